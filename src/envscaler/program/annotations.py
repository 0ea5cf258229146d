"""`Annotations`: Python annotations of one module as JSON Schema, read from the syntax tree and never evaluated.

Whatever it does not understand becomes the empty schema, which allows everything. Signatures and docstrings are
`schemas`' business.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from envscaler.record import JsonSchema

_PLAIN: dict[str, JsonSchema] = {
    "str": {"type": "string"},
    "Text": {"type": "string"},
    "bytes": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "Decimal": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "NoneType": {"type": "null"},
    "UUID": {"type": "string", "format": "uuid"},
    "datetime": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
}
MAPPINGS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "DefaultDict", "defaultdict", "OrderedDict"})
"""Names of generic types that become JSON objects with keys of the data's own."""
_ARRAYS = {"list", "List", "Sequence", "MutableSequence", "Iterable", "Iterator", "Collection", "Deque", "deque"}
_SETS = {"set", "Set", "frozenset", "FrozenSet", "AbstractSet", "MutableSet"}
_TUPLES = {"tuple", "Tuple"}
_WRAPPERS = {"Required", "NotRequired", "Final", "ClassVar", "ReadOnly"}
_ENUMS = {"Enum", "StrEnum", "IntEnum"}
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class RecordField:
    """One key of a TypedDict."""

    name: str
    annotation: str
    """Its annotation as written, without `Required` and `NotRequired`."""
    required: bool
    schema: JsonSchema


class Annotations:
    """Reads annotations against the TypedDicts, enums, dataclasses and aliases of one module."""

    def __init__(self, module: ast.Module | None = None) -> None:
        self._classes: dict[str, ast.ClassDef] = {}
        self._aliases: dict[str, ast.expr] = {}
        self._renamed: dict[str, str] = {}
        self._open: set[str] = set()
        """Names being resolved, so that a type that contains itself ends."""
        for node in ast.walk(module) if module is not None else ():
            if isinstance(node, ast.ClassDef):
                self._classes.setdefault(node.name, node)
            elif isinstance(node, ast.ImportFrom):
                self._renamed.update({name.asname: name.name for name in node.names if name.asname})
        for statement in module.body if module is not None else ():
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self._aliases[statement.targets[0].id] = statement.value
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
                self._aliases[statement.target.id] = statement.value

    def of_text(self, text: str) -> JsonSchema:
        """The schema of an annotation given as text."""
        try:
            return self.of(ast.parse(text.strip(), mode="eval").body)
        except _UNPARSABLE:
            return {}

    def of(self, node: ast.expr | None) -> JsonSchema:
        """The schema of an annotation; None stands for a missing one."""
        if isinstance(node, ast.Constant):
            if node.value is None:
                return {"type": "null"}
            return self.of_text(node.value) if isinstance(node.value, str) else {}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return either([self.of(node.left), self.of(node.right)])
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(self._name(node))
        return self._subscript(node) if isinstance(node, ast.Subscript) else {}

    def fields(self, name: str) -> tuple[RecordField, ...] | None:
        """The keys of a TypedDict or the fields of a dataclass; None when `name` is neither."""
        call = self._functional(name)
        node = self._classes.get(name)
        if call is None and (node is None or not (self._is_typed_dict(name) or self._is_dataclass(node))):
            return None
        if name in self._open:
            return ()
        self._open.add(name)
        try:
            if call is not None:
                return self._functional_fields(call)
            return tuple(self._class_fields(node).values()) if node is not None else ()
        finally:
            self._open.discard(name)

    # -- named types --

    def _name(self, node: ast.expr) -> str:
        """The last component of a dotted name, seen through `import … as`; "" when it is none."""
        if isinstance(node, ast.Name):
            return self._renamed.get(node.id, node.id)
        return node.attr if isinstance(node, ast.Attribute) else ""

    def _named(self, name: str) -> JsonSchema:
        if name in self._open:
            return {"type": "object"} if name in self._classes else {}
        if name in self._classes or name in self._aliases:
            return self._defined(name)
        if name in MAPPINGS or name == "Counter":
            return {"type": "object"}
        if name in _ARRAYS or name in _TUPLES:
            return {"type": "array"}
        if name in _SETS:
            return {"type": "array", "uniqueItems": True}
        return dict(_PLAIN.get(name, {}))

    def _defined(self, name: str) -> JsonSchema:
        fields = self.fields(name)
        if fields is not None:
            schema: JsonSchema = {"type": "object", "properties": {field.name: field.schema for field in fields}}
            required = [field.name for field in fields if field.required]
            return {**schema, "required": required} if required else schema
        node = self._classes.get(name)
        if node is not None:
            return literal_schema(self._enum_values(node))
        value = self._aliases[name]
        if isinstance(value, ast.Call) and self._name(value.func) == "NewType" and len(value.args) == 2:
            value = value.args[1]
        self._open.add(name)
        try:
            return self.of(value) if not isinstance(value, ast.Constant) else {}
        finally:
            self._open.discard(name)

    def _bases(self, node: ast.ClassDef) -> list[str]:
        return [self._name(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases]

    def _is_typed_dict(self, name: str, depth: int = 0) -> bool:
        node = self._classes.get(name)
        if node is None or depth > 20:
            return False
        return any(base == "TypedDict" or self._is_typed_dict(base, depth + 1) for base in self._bases(node))

    def _is_dataclass(self, node: ast.ClassDef) -> bool:
        heads = [part.func if isinstance(part, ast.Call) else part for part in node.decorator_list]
        return any(self._name(head) == "dataclass" for head in heads) or "NamedTuple" in self._bases(node)

    def _class_fields(self, node: ast.ClassDef, depth: int = 0) -> dict[str, RecordField]:
        fields: dict[str, RecordField] = {}
        for base in self._bases(node):
            parent = self._classes.get(base)
            if parent is not None and depth < 20:
                fields.update(self._class_fields(parent, depth + 1))
        total = _is_total(node.keywords)
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                fields[part.target.id] = self._field(part.target.id, part.annotation, total and part.value is None)
        return fields

    def _field(self, name: str, annotation: ast.expr, required: bool) -> RecordField:
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            text = annotation.value
            try:
                annotation = ast.parse(text, mode="eval").body
            except _UNPARSABLE:
                return RecordField(name, text, required, {})
        if isinstance(annotation, ast.Subscript):
            wrapper = self._name(annotation.value)
            if wrapper in {"NotRequired", "Required"}:
                required, annotation = wrapper == "Required", annotation.slice
        return RecordField(name, ast.unparse(annotation), required, self.of(annotation))

    def _functional(self, name: str) -> ast.Call | None:
        """The call of `Name = TypedDict("Name", {…})`."""
        value = self._aliases.get(name)
        if isinstance(value, ast.Call) and self._name(value.func) == "TypedDict" and len(value.args) == 2:
            return value
        return None

    def _functional_fields(self, call: ast.Call) -> tuple[RecordField, ...]:
        keys = call.args[1]
        if not isinstance(keys, ast.Dict):
            return ()
        total = _is_total(call.keywords)
        return tuple(
            self._field(key.value, value, total)
            for key, value in zip(keys.keys, keys.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        )

    def _enum_values(self, node: ast.ClassDef) -> list[Any]:
        bases = set(self._bases(node))
        values: list[Any] = []
        for statement in node.body if bases & _ENUMS else ():
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                continue
            name, value = statement.targets[0].id, statement.value
            if isinstance(value, ast.Call) and self._name(value.func) == "auto":
                values.append(name.lower() if "StrEnum" in bases else len(values) + 1)
            elif isinstance(value, ast.Constant) and not name.startswith("_"):
                values.append(value.value)
        return values

    # -- subscripts --

    def _subscript(self, node: ast.Subscript) -> JsonSchema:
        name = self._name(node.value)
        arguments = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not arguments:
            return self._named(name)
        if name == "Optional":
            return either([self.of(arguments[0]), {"type": "null"}])
        if name == "Union":
            return either([self.of(argument) for argument in arguments])
        if name == "Literal":
            return literal_schema([value for argument in arguments for value in self._literals(argument)])
        if name == "Annotated":
            return self._annotated(arguments)
        if name in _WRAPPERS:
            return self.of(arguments[0])
        if name in MAPPINGS:
            values = self.of(arguments[1]) if len(arguments) > 1 else {}
            return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
        if name in _ARRAYS or name in _SETS:
            elements = self.of(arguments[0])
            return {**self._named(name), "items": elements} if elements else self._named(name)
        return self._tuple(arguments) if name in _TUPLES else self._named(name)

    def _annotated(self, arguments: list[ast.expr]) -> JsonSchema:
        schema = self.of(arguments[0])
        for note in arguments[1:]:
            if isinstance(note, ast.Constant) and isinstance(note.value, str):
                return {**schema, "description": note.value}
            for word in note.keywords if isinstance(note, ast.Call) else ():
                if word.arg == "description" and isinstance(word.value, ast.Constant):
                    return {**schema, "description": str(word.value.value)}
        return schema

    def _tuple(self, arguments: list[ast.expr]) -> JsonSchema:
        last = arguments[-1]
        if isinstance(last, ast.Constant) and last.value is ...:
            elements = self.of(arguments[0])
            return {"type": "array", "items": elements} if elements else {"type": "array"}
        parts = [self.of(argument) for argument in arguments]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}

    def _literals(self, node: ast.expr) -> list[Any]:
        if isinstance(node, ast.Subscript) and self._name(node.value) == "Literal":
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return [value for part in inner for value in self._literals(part)]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = self._classes.get(node.value.id)
            for part in owner.body if owner is not None else ():
                if not isinstance(part, ast.Assign) or not isinstance(part.value, ast.Constant):
                    continue
                if isinstance(part.targets[0], ast.Name) and part.targets[0].id == node.attr:
                    return [part.value.value]
        try:
            value = ast.literal_eval(node)
        except (*_UNPARSABLE, TypeError):
            return []
        return [value] if value is None or isinstance(value, (str, int)) else []


def either(options: list[JsonSchema]) -> JsonSchema:
    """The schema of a union: flat, without repeats; an empty option allows everything."""
    flat: list[JsonSchema] = []
    for option in options:
        parts = option["anyOf"] if set(option) == {"anyOf"} else [option]
        flat.extend(part for part in parts if part not in flat)
    if not all(flat):
        return {}
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


_KINDS: dict[type, str] = {
    str: "string",
    int: "integer",
    bool: "boolean",
    float: "number",
    type(None): "null",
}


def literal_schema(values: list[Any]) -> JsonSchema:
    """The schema of a closed list of values; the empty schema when there is none."""
    unique: list[Any] = []
    for value in values:
        # 1 == True in Python, not in JSON.
        if not any(type(value) is type(other) and value == other for other in unique):
            unique.append(value)
    kinds = {_KINDS.get(type(value), "") for value in unique}
    if not unique or "" in kinds:
        return {}
    return {"type": kinds.pop(), "enum": unique} if len(kinds) == 1 else {"enum": unique}


def _is_total(keywords: list[ast.keyword]) -> bool:
    return not any(
        word.arg == "total" and isinstance(word.value, ast.Constant) and word.value.value is False for word in keywords
    )
