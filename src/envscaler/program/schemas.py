"""Tool schemas from signatures and docstrings, and where they differ from declared ones.

Annotations themselves are `annotations`' business; the description of a tool is its plan's, not its docstring's.
"""

from __future__ import annotations

import ast
from typing import Any

from envscaler.program.annotations import Annotations, either, literal_schema
from envscaler.program.docstrings import ParameterNote, parameter_notes
from envscaler.program.state_class import FunctionNode, class_node, functions_of, is_tool, literal, parsed
from envscaler.record import JsonSchema

_WORDS = {
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "dictionary": "dict",
    "object": "dict",
}


def tool_schemas(source: str, class_name: str) -> dict[str, JsonSchema]:
    """The parameters schema of each method that can be a tool, in the order of the class.

    A default of None allows null. `*args` cannot be given by name and is left out; `**kwargs` allows further names.

    Raises:
        ProgramError: if the program does not parse or lacks the class.

    Source: paper 3.2, assembly.
    """
    annotations = Annotations(parsed(source))
    functions = functions_of(class_node(source, class_name))
    return {name: _schema(node, annotations) for name, node in functions.items() if is_tool(node)}


def _schema(node: FunctionNode, annotations: Annotations) -> JsonSchema:
    notes = parameter_notes(ast.get_docstring(node, clean=False))
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults: dict[str, ast.expr] = {}
    if node.args.defaults:
        ends = zip(positional[-len(node.args.defaults) :], node.args.defaults, strict=True)
        defaults = {parameter.arg: default for parameter, default in ends}
    for parameter, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if default is not None:
            defaults[parameter.arg] = default
    properties: dict[str, JsonSchema] = {}
    for parameter in [*positional[1:], *node.args.kwonlyargs]:
        note = notes.get(parameter.arg, ParameterNote())
        properties[parameter.arg] = _property(parameter, defaults.get(parameter.arg), note, annotations)
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in defaults],
        "additionalProperties": node.args.kwarg is not None,
    }


def _property(
    parameter: ast.arg, default: ast.expr | None, note: ParameterNote, annotations: Annotations
) -> JsonSchema:
    value = literal(default)
    null_default = isinstance(default, ast.Constant) and default.value is None
    if parameter.annotation is not None:
        schema = annotations.of(parameter.annotation)
    elif note.type:
        schema = annotations.of_text(_WORDS.get(note.type.lower(), note.type))
    elif value is not None:
        schema = annotations.of_text(type(value).__name__)
    else:
        schema = {}
    if null_default:
        # `name: str = None` is common, and whoever calls the method may say null.
        schema = _nullable(schema)
    if note.description and "description" not in schema:
        schema = {**schema, "description": note.description}
    if null_default or (value is not None and _is_json(value)):
        schema = {**schema, "default": value}
    return schema


def _nullable(schema: JsonSchema) -> JsonSchema:
    description = {"description": schema["description"]} if "description" in schema else {}
    bare = {key: part for key, part in schema.items() if key != "description"}
    return {**either([bare, {"type": "null"}]), **description} if "null" not in json_types(schema) else schema


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(part) for key, part in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, (str, int, float))


# -- comparison ---------------------------------------------------------------------------------------------


def schemas_agree(declared: JsonSchema, derived: JsonSchema) -> tuple[str, ...]:
    """Where a tool's declared parameters differ from those that its method takes; empty when they agree.

    A side that says nothing of a type agrees with anything; null makes no difference.
    """
    left, right = declared.get("properties") or {}, derived.get("properties") or {}
    wanted, needed = set(declared.get("required") or ()), set(derived.get("required") or ())
    faults: list[str] = []
    if derived.get("additionalProperties") is not True:
        faults += [f"the tool declares `{name}`, which the method does not take" for name in left if name not in right]
    for name, schema in right.items():
        if name not in left:
            verb = "needs" if name in needed else "takes"
            faults.append(f"the method {verb} `{name}`, which the tool does not declare")
            continue
        if name in needed and name not in wanted:
            faults.append(f"`{name}` is optional in the tool's declaration, but the method has no default for it")
        if name in wanted and name not in needed:
            faults.append(f"`{name}` is required in the tool's declaration, but the method has a default for it")
        faults += _differences(left[name], schema, f"`{name}`")
    return tuple(faults)


def _differences(declared: Any, derived: JsonSchema, name: str) -> list[str]:
    if not isinstance(declared, dict):
        return [f"{name} has no schema in the tool's declaration"]
    left, right = json_types(declared) - {"null"}, json_types(derived) - {"null"}
    if left and right and left != right:
        return [f"{name} is {_or(left)} in the tool's declaration, {_or(right)} in the method"]
    closed, given = _values(derived), _values(declared)
    if closed is not None and given is None:
        return [f"{name} has a closed list of values in the method, but not in the tool's declaration"]
    if closed is not None and given is not None and (set(map(repr, given)) ^ set(map(repr, closed))) - {"None"}:
        return [f"{name} allows other values in the tool's declaration than in the method"]
    elements_left, elements_right = _part(declared, "items"), _part(derived, "items")
    if elements_left and elements_right:
        return _differences(elements_left, elements_right, f"each of {name}")
    fields_left, fields_right = _part(declared, "properties"), _part(derived, "properties")
    faults: list[str] = []
    for field in fields_left if fields_right else ():
        if field in fields_right:
            faults += _differences(fields_left[field], fields_right[field], f"`{field}` of {name}")
        else:
            faults.append(f"`{field}` of {name} is declared by the tool, but unknown in the method")
    return faults


def json_types(schema: JsonSchema) -> set[str]:
    """The JSON types that a schema allows; empty when it does not say."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return {part for part in kind if isinstance(part, str)}
    kinds: set[str] = set()
    for option in schema.get("anyOf") or schema.get("oneOf") or ():
        types = json_types(option)
        if not types:
            return set()
        kinds |= types
    if not kinds and isinstance(schema.get("enum"), list):
        return {part for value in schema["enum"] for part in json_types(literal_schema([value]))}
    return kinds


def _some(schema: JsonSchema) -> JsonSchema:
    """The schema, or its one option that is not null."""
    options = [option for option in schema.get("anyOf") or schema.get("oneOf") or () if option != {"type": "null"}]
    return _some(options[0]) if len(options) == 1 else schema


def _part(schema: JsonSchema, key: str) -> JsonSchema:
    found = _some(schema).get(key)
    return found if isinstance(found, dict) else {}


def _values(schema: JsonSchema) -> list[Any] | None:
    found = _some(schema).get("enum")
    return found if isinstance(found, list) else None


def _or(kinds: set[str]) -> str:
    return " or ".join(sorted(kinds))
