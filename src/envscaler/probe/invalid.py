"""`wrong_arguments`: arguments that are wrong in a way that has a name.

`unknown_id`, `empty` and `extreme` mostly satisfy the schema: refusing them is the program's task.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from envscaler.probe.pool import Pool
from envscaler.probe.valid import Writer
from envscaler.program.arguments import SchemaChecker
from envscaler.program.schemas import json_types
from envscaler.skeleton import Entity, ToolSpec
from envscaler.state import JsonValue, State

WrongKind = Literal["missing", "wrong_type", "unknown_id", "empty", "extreme", "not_in_enum", "extra", "null"]

_OF_EVERY_TYPE: tuple[JsonValue, ...] = (12345, "forty-two", ["unexpected"], {"unexpected": True}, True, 3.5)
_EXTREMES: tuple[JsonValue, ...] = (-1, 10**12, 0, -(10**6), 1e15, "x" * 5000)
_EMPTIES: tuple[JsonValue, ...] = ("", [], {})
_ABSENT: Any = object()
_LET_THROUGH: tuple[WrongKind, ...] = ("unknown_id", "empty", "extreme")
"""Kinds of wrong values that mostly satisfy a schema, those first that programs refuse most."""
_Fault = tuple[WrongKind, JsonValue]


def wrong_arguments(
    tool: ToolSpec,
    state: State,
    entities: Sequence[Entity],
    rng: random.Random,
    *,
    arguments: Mapping[str, JsonValue] | None = None,
    kinds: Collection[WrongKind] | None = None,
    pool: Pool | None = None,
) -> tuple[WrongKind, dict[str, JsonValue]]:
    """Arguments for `tool` that are right but for one thing, and what that is; kinds are drawn evenly.

    Args:
        arguments: the right ones, of which one is made wrong; None: drawn. Those that are not given are left alone.
        kinds: kinds to draw from, where the tool can have them; None: all.
        pool: that of the state and the entities, where there is one.
    """
    pool = pool if pool is not None else Pool(state, entities)
    writer = Writer(tool, pool, rng)
    given = arguments
    arguments = writer.arguments() if given is None else dict(given)
    properties = tool.parameters.get("properties")
    schemas: dict[str, Any] = properties if isinstance(properties, dict) else {}
    by_kind: dict[WrongKind, list[tuple[str, JsonValue]]] = {}
    required = set(tool.parameters.get("required") or ()) & set(schemas)
    for name, schema in schemas.items():
        if given is not None and name not in given:
            continue
        for kind, value in _faults(writer, name, schema, pool, required=name in required):
            by_kind.setdefault(kind, []).append((name, value))
    if tool.parameters.get("additionalProperties") is not True or not by_kind:
        by_kind["extra"] = [(_unused(schemas), "unexpected")]
    kind = rng.choice([kind for kind in by_kind if kinds is None or kind in kinds] or list(by_kind))
    # Required parameters first: a wrong optional one that the method ignores finds nothing out.
    choices = [choice for choice in by_kind[kind] if choice[0] in required] or by_kind[kind]
    name, value = rng.choice(choices)
    if value is _ABSENT:
        arguments.pop(name, None)
    else:
        arguments[name] = value
    return kind, arguments


def spoiled_arguments(
    tool: ToolSpec, state: State, entities: Sequence[Entity], rng: random.Random, arguments: Mapping[str, JsonValue]
) -> list[dict[str, JsonValue]]:
    """These arguments once for each of them, with that one wrong in a way that its schema lets through.

    A key is one that does not exist, a text or list is empty, a number is out of all bounds; a parameter that its
    schema leaves no such value is left out of it.
    """
    pool = Pool(state, entities)
    writer = Writer(tool, pool, rng)
    properties = tool.parameters.get("properties")
    spoiled = []
    for name, schema in (properties if isinstance(properties, dict) else {}).items():
        if name not in arguments:
            continue
        checker = SchemaChecker(writer.resolved(schema))
        # Of a schema that says nothing, nothing is wrong; an empty text is what programs refuse most.
        faults = {"empty": "", **dict(reversed([*_faults(writer, name, schema, pool, required=False)]))}
        wrong = [faults[kind] for kind in _LET_THROUGH if kind in faults and not checker.faults(faults[kind], "it")]
        if wrong:
            spoiled.append({**arguments, name: wrong[0]})
    return spoiled


def _faults(writer: Writer, name: str, schema: Any, pool: Pool, *, required: bool) -> Iterator[_Fault]:
    schema = writer.resolved(schema)
    checker = SchemaChecker(schema)
    kinds = json_types(schema)
    enum = _enum(schema)
    if required:
        yield "missing", _ABSENT
    if kinds and "null" not in kinds and not (enum and None in schema.get("enum", ())):
        yield "null", None
    if enum:
        # What a closed list refuses is `not_in_enum`, whatever its type.
        yield "not_in_enum", _stranger(enum)
        return
    for value in _OF_EVERY_TYPE if kinds else ():
        if not _is_of(kinds, value) and checker.faults(value, "it"):
            yield "wrong_type", value
    container = pool.container(name)
    if container is not None and "string" in kinds:
        yield "unknown_id", _unknown_id(pool.ids(container))
    for empty in _EMPTIES:
        if _is_of(kinds, empty):
            yield "empty", empty
    for extreme in _EXTREMES if container is None else ():
        if _is_of(kinds, extreme):
            yield "extreme", extreme


def _is_of(kinds: set[str], value: JsonValue) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, int):
        return bool(kinds & {"integer", "number"})
    names: dict[type, str] = {str: "string", float: "number", list: "array", dict: "object"}
    return names[type(value)] in kinds


def _unknown_id(ids: list[str]) -> str:
    number = 999
    while f"UNKNOWN-{number}" in ids:
        number += 1
    return f"UNKNOWN-{number}"


def _enum(schema: dict[str, Any]) -> list[JsonValue]:
    for part in (schema, *(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())):
        if isinstance(part, dict) and isinstance(part.get("enum"), list):
            return [value for value in part["enum"] if value is not None]
    return []


def _stranger(enum: list[JsonValue]) -> JsonValue:
    if isinstance(enum[0], str):
        value = f"not_{enum[0]}"
        while value in enum:
            value = f"not_{value}"
        return value
    return max((value for value in enum if isinstance(value, (int, float))), default=0) + 1


def _unused(schemas: dict[str, Any]) -> str:
    name = "unexpected_option"
    while name in schemas:
        name += "_"
    return name
