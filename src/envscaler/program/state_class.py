"""The state class in the text of a program: which class it is, its methods, its declared state attributes.

Nothing here changes a program (`assembly` does) or judges it (`analysis` does).
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from functools import lru_cache

from envscaler.errors import ProgramError
from envscaler.program.annotations import MAPPINGS, Annotations, RecordField
from envscaler.record import JsonSchema
from envscaler.state import JsonValue

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_RECORD_BASES = {"TypedDict", "Enum", "StrEnum", "IntEnum", "NamedTuple", "Protocol", "Exception", "ValueError"}
_NO_TOOL = {"staticmethod", "classmethod", "property", "cached_property", "setter", "getter", "deleter", "overload"}
_PLAIN_SCHEMAS: dict[type, JsonSchema] = {
    dict: {"type": "object"},
    list: {"type": "array"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
}


@dataclass(frozen=True, slots=True)
class Container:
    """One state attribute that `__init__` declares."""

    name: str
    annotation: str | None
    """Its annotation as written; None when it has none."""
    schema: JsonSchema
    """The annotation (else the type of the default) as JSON Schema; empty when not known."""
    record: str | None = None
    """Name of the TypedDict that its values (or itself) are; None when they are none."""
    fields: tuple[RecordField, ...] = ()
    """The fields of that TypedDict."""
    mapping: bool = False
    """Whether it maps ids to values."""
    default: JsonValue = None
    """The literal that it is set to; None also when it is no literal."""


@lru_cache(maxsize=16)
def parsed(source: str) -> ast.Module:
    """The syntax tree of a program; shared, so not to be changed.

    Raises:
        ProgramError: if it does not parse.
    """
    try:
        return ast.parse(source)
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        raise ProgramError(f"the program does not parse: {error.msg}{where}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ProgramError(f"the program does not parse: {error}") from error


def class_name_of(source: str) -> str:
    """The name of the class that holds state and tools: no TypedDict, enum, dataclass or exception.

    Of several, the one with most tool methods, and the last of these.

    Raises:
        ProgramError: if there is none.
    """
    records = set(_RECORD_BASES)
    candidates: list[ast.ClassDef] = []
    for node in parsed(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        if {last_name(base) for base in node.bases} & records or "dataclass" in _decorators(node):
            # What is derived from a TypedDict of the module is one as well.
            records.add(node.name)
        else:
            candidates.append(node)
    if not candidates:
        raise ProgramError("the program defines no class for state and tools")
    weights = [sum(map(is_tool, functions_of(node).values())) for node in candidates]
    return max(zip(weights, range(len(candidates)), candidates, strict=True))[2].name


def class_node(source: str, class_name: str) -> ast.ClassDef:
    """The top-level class of that name; of several the last, which counts when the program runs.

    Raises:
        ProgramError: if there is none.
    """
    for node in reversed(parsed(source).body):
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            return node
    raise ProgramError(f"the program defines no class {class_name}")


def functions_of(node: ast.ClassDef) -> dict[str, FunctionNode]:
    """All functions of a class body by name; the last definition of a name counts."""
    return {part.name: part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))}


def methods_of(source: str, class_name: str) -> tuple[str, ...]:
    """Names of the methods that can be tools (public, bound to the instance, no property), in order.

    Raises:
        ProgramError: if the program does not parse or lacks the class.
    """
    return tuple(name for name, node in functions_of(class_node(source, class_name)).items() if is_tool(node))


def is_tool(node: FunctionNode) -> bool:
    """Whether a function of the class can be a tool."""
    return not node.name.startswith("_") and not _decorators(node) & _NO_TOOL


def method_source(source: str, class_name: str, name: str) -> str:
    """The text of one method with its decorators, without the class's indentation.

    Raises:
        ProgramError: if the class has no such method.
    """
    node = functions_of(class_node(source, class_name)).get(name)
    if node is None:
        raise ProgramError(f"{class_name} has no method {name}")
    first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
    # Split as the parser counts lines: U+2028 inside a string ends none.
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno])) + "\n"


def containers(source: str, class_name: str) -> dict[str, Container]:
    """The state attributes that `__init__` declares, in order, such as `self.loans: Dict[str, Loan] = {}`.

    Annotated attributes of the class body count as well, and private ones do, since they are part of the state.

    Raises:
        ProgramError: if the program does not parse or lacks the class.
    """
    node = class_node(source, class_name)
    annotations = Annotations(parsed(source))
    found: dict[str, Container] = {}
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            found[name] = _container(name, statement.annotation, statement.value, annotations)
    init = functions_of(node).get("__init__")
    self_name = init.args.args[0].arg if init is not None and init.args.args else ""
    for part in ast.walk(init) if init is not None else ():
        if not isinstance(part, (ast.Assign, ast.AnnAssign)):
            continue
        targets: list[ast.expr] = part.targets if isinstance(part, ast.Assign) else [part.target]
        annotation = part.annotation if isinstance(part, ast.AnnAssign) else None
        for target in targets:
            owner = target.value if isinstance(target, ast.Attribute) else None
            if not isinstance(target, ast.Attribute) or not isinstance(owner, ast.Name) or owner.id != self_name:
                continue
            if annotation is not None or target.attr not in found:
                found[target.attr] = _container(target.attr, annotation, part.value, annotations)
    return found


def _container(name: str, annotation: ast.expr | None, value: ast.expr | None, annotations: Annotations) -> Container:
    default = literal(value)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError):
            annotation = None
    if annotation is None:
        return Container(name, None, dict(_PLAIN_SCHEMAS.get(type(default), {})), default=default)
    inner = annotation
    while isinstance(inner, ast.Subscript):
        arguments = inner.slice.elts if isinstance(inner.slice, ast.Tuple) else [inner.slice]
        inner = arguments[-1] if last_name(inner) in MAPPINGS else arguments[0]
    fields = annotations.fields(last_name(inner))
    return Container(
        name,
        ast.unparse(annotation),
        annotations.of(annotation),
        record=last_name(inner) if fields is not None else None,
        fields=fields or (),
        mapping=last_name(annotation) in MAPPINGS,
        default=default,
    )


def literal(node: ast.expr | None) -> JsonValue:
    """The value of a literal; None when it is none."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def last_name(node: ast.expr) -> str:
    """The last component of a dotted name, without subscripts; "" when it is none."""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _decorators(node: FunctionNode | ast.ClassDef) -> set[str]:
    return {last_name(part.func if isinstance(part, ast.Call) else part) for part in node.decorator_list}
