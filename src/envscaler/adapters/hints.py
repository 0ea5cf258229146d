"""`hint_of`: the Python type hint that says of a value what a JSON Schema says, as far as hints can.

Trainers that take tools as functions derive the schema again from the hints. `unsaid` gives what was lost on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Literal

from envscaler.record import JsonSchema

_PLAIN: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
_SCALARS = (str, int, float, bool, type(None))
_SAID = {
    "array": frozenset({"type", "items"}),
    "object": frozenset({"type", "additionalProperties"}),
}
_SILENT = frozenset({"description", "title", "default", "examples", "$defs", "definitions"})
_MAX_DEPTH = 8


def hint_of(schema: object, root: JsonSchema | None = None, depth: int = 0) -> Any:
    """The hint for a value that `schema` describes; `Any` where no hint says it.

    Args:
        root: the schema in which references are looked up; None: `schema` itself.
    """
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return Any
    root = root if root is not None else dict(schema)
    if "$ref" in schema:
        return hint_of(_referred(schema["$ref"], root), root, depth + 1)
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, Sequence) and not isinstance(choices, str) and choices:
        return Literal[tuple(choices)] if all(type(choice) in _SCALARS for choice in choices) else Any
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            return _either([hint_of(part, root, depth + 1) for part in schema[keyword]])
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return _either([hint_of({**schema, "type": kind}, root, depth + 1) for kind in kinds]) if kinds else Any
    hint = _of_kind(kinds, schema, root, depth)
    return _either([hint, type(None)]) if schema.get("nullable") is True else hint


def unsaid(schema: object) -> bool:
    """Whether a schema says more of a value than its hint, default and description tell."""
    if not isinstance(schema, Mapping):
        return False
    rest = set(schema) - _SILENT
    if "const" in rest or "enum" in rest:
        choices = [schema["const"]] if "const" in rest else schema["enum"]
        return not isinstance(choices, list) or not all(type(choice) in _SCALARS for choice in choices)
    for keyword in ("anyOf", "oneOf"):
        if keyword in rest:
            return bool(rest - {keyword}) or any(unsaid(part) for part in schema[keyword])
    kinds = schema.get("type")
    if not isinstance(kinds, str):
        return bool(rest - {"type"})
    said = _SAID.get(kinds, frozenset({"type"}))
    return bool(rest - said - {"nullable"}) or any(
        unsaid(schema.get(keyword)) for keyword in ("items", "additionalProperties")
    )


def _of_kind(kind: object, schema: Mapping[str, Any], root: JsonSchema, depth: int) -> Any:
    if not isinstance(kind, str) or kind not in _PLAIN:
        return Any
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return list[hint_of(schema["items"], root, depth + 1)]  # type: ignore[misc]
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return dict[str, hint_of(schema["additionalProperties"], root, depth + 1)]  # type: ignore[misc]
    return _PLAIN[kind]


def _either(hints: Sequence[Any]) -> Any:
    # A union with Any says nothing more than Any.
    return Any if Any in hints else reduce(or_, hints)


def _referred(reference: object, root: JsonSchema) -> object:
    """What a reference within the schema leads to; None where it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: object = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if not part:
            continue
        if not isinstance(found, Mapping):
            return None
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found
