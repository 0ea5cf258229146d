"""`SchemaChecker`: a JSON Schema compiled once into functions that say in sentences what is wrong with a value.

Covers what tool schemas use (types, enums, unions, objects, arrays, bounds, local references); `format` and unknown
keywords are not enforced. An integer is written without a decimal point, since the value reaches a Python method.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import msgspec

from envscaler.record import JsonSchema
from envscaler.state import JsonValue, encode

_Check = Callable[[JsonValue, str, list[str]], None]
"""Appends to the list what is wrong with the value, which the text names."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list, tuple),
    "null": (type(None),),
}
_ARTICLES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


_ARGUMENTS = "the arguments"
"""What sentences call the value as a whole; its parts are named by their path in backticks."""


class SchemaChecker:
    """Says what is wrong with a value; made once per schema, microseconds per valid value."""

    def __init__(self, schema: JsonSchema) -> None:
        self._root = schema
        self._references: dict[str, _Check] = {}
        self._check = self._compiled(schema)

    def faults(self, value: JsonValue, name: str) -> tuple[str, ...]:
        """What is wrong with `value`, a sentence each; empty when it satisfies the schema.

        Args:
            name: what the sentences call the value as a whole, not empty.
        """
        found: list[str] = []
        self._check(value, name, found)
        return tuple(found)

    def _compiled(self, schema: Any) -> _Check:
        if schema is False:
            return lambda value, name, found: found.append(f"{name} is not allowed")
        if not isinstance(schema, dict):
            return _anything
        checks: list[_Check] = []
        if isinstance(schema.get("$ref"), str):
            checks.append(self._reference(schema["$ref"]))
        if "type" in schema:
            checks.append(_type_check(schema["type"], nullable=schema.get("nullable") is True))
        if isinstance(schema.get("enum"), list):
            checks.append(_enum_check(schema["enum"]))
        elif "const" in schema:
            checks.append(_enum_check([schema["const"]]))
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list) and schema[keyword]:
                checks.append(self._union(schema[keyword]))
        if isinstance(schema.get("allOf"), list):
            checks.extend(map(self._compiled, schema["allOf"]))
        if {"properties", "required", "additionalProperties"} & set(schema):
            checks.append(self._object(schema))
        if {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"} & set(schema):
            checks.append(self._array(schema))
        if bounds := _bounds(schema):
            checks.append(bounds)
        if not checks:
            return _anything
        return checks[0] if len(checks) == 1 else _all(checks)

    def _reference(self, pointer: str) -> _Check:
        """Resolved at the first use, so that a schema may contain itself."""

        def check(value: JsonValue, name: str, found: list[str]) -> None:
            if pointer not in self._references:
                target: Any = self._root
                for part in pointer.lstrip("#/").split("/") if pointer not in ("#", "#/") else ():
                    target = target.get(part) if isinstance(target, dict) else None
                self._references[pointer] = self._compiled(target)
            self._references[pointer](value, name, found)

        return check

    def _union(self, options: list[Any]) -> _Check:
        branches = [self._compiled(option) for option in options]

        def check(value: JsonValue, name: str, found: list[str]) -> None:
            closest: list[str] | None = None
            outsiders: list[str] = []
            for option, branch in zip(options, branches, strict=True):
                faults: list[str] = []
                branch(value, name, faults)
                if not faults:
                    return
                if _has_type(option, value):
                    # The branch of the value's own type says best what is wrong inside it.
                    closest = closest if closest is not None else faults
                else:
                    outsiders += [fault for fault in faults if fault not in outsiders]
            if closest is not None:
                found += closest
            else:
                found.append(_joined(options, value, name) or " or ".join(outsiders[:3]))

        return check

    def _object(self, schema: JsonSchema) -> _Check:
        properties: dict[str, Any] = schema.get("properties") or {}
        checks = {key: self._compiled(part) for key, part in properties.items()}
        required = tuple(key for key in schema.get("required") or () if isinstance(key, str))
        others = schema.get("additionalProperties", True)
        rest = self._compiled(others)

        def check(value: JsonValue, name: str, found: list[str]) -> None:
            if not isinstance(value, dict):
                return
            missing = [key for key in required if key not in value]
            extra = [] if others is True or others == {} else [key for key in value if key not in checks]
            for key in missing:
                found.append(f"missing required argument `{key}`" if name == _ARGUMENTS else f"{name} lacks `{key}`")
            for key, part in value.items():
                branch = checks.get(key)
                if branch is not None:
                    branch(part, _inner(name, key), found)
            for key in extra:
                if others is not False:
                    rest(value[key], _inner(name, key), found)
                    continue
                known = [other for other in checks if other not in value]
                told = f"unknown argument `{key}`" if name == _ARGUMENTS else f"{name} has no `{key}`"
                found.append(told + _hint(key, known))

        return check

    def _array(self, schema: JsonSchema) -> _Check:
        prefix = [self._compiled(part) for part in schema.get("prefixItems") or ()]
        each = self._compiled(schema["items"]) if "items" in schema else _anything
        least, most = schema.get("minItems"), schema.get("maxItems")
        unique = schema.get("uniqueItems") is True

        def check(value: JsonValue, name: str, found: list[str]) -> None:
            if not isinstance(value, (list, tuple)):
                return
            if isinstance(least, int) and len(value) < least:
                found.append(f"{name} needs at least {_count(least, 'element')}, it has {len(value)}")
            if isinstance(most, int) and len(value) > most:
                found.append(f"{name} takes at most {_count(most, 'element')}, it has {len(value)}")
            if each is not _anything or prefix:
                for index, part in enumerate(value):
                    branch = prefix[index] if index < len(prefix) else each
                    branch(part, f"{name[:-1]}[{index}]`" if name[-1] == "`" else f"`[{index}]`", found)
            if unique and len({_text(part) for part in value}) < len(value):
                found.append(f"{name} holds an element twice")

        return check


def argument_faults(schema: JsonSchema, arguments: dict[str, JsonValue]) -> tuple[str, ...]:
    """What is wrong with the arguments of a call, a sentence each; empty when they are right.

    Names that the schema does not declare are wrong unless it says `additionalProperties`. The compiled schema is
    kept, so that calling this at every step is cheap.

    Args:
        schema: the tool's parameters, of type object.
    """
    return _checker(_KEYS.encode(schema)).faults(arguments, _ARGUMENTS)


_KEYS = msgspec.msgpack.Encoder()
"""Faster than JSON; the order of keys need not be canonical, since it only decides what is compiled twice."""


@lru_cache(maxsize=4096)
def _checker(packed: bytes) -> SchemaChecker:
    schema = msgspec.msgpack.decode(packed)
    closed = {"additionalProperties": False, **schema} if isinstance(schema, dict) else {}
    return SchemaChecker(closed)


def _anything(value: JsonValue, name: str, found: list[str]) -> None:
    return None


def _all(checks: list[_Check]) -> _Check:
    def check(value: JsonValue, name: str, found: list[str]) -> None:
        before = len(found)
        for part in checks:
            part(value, name, found)
            if len(found) > before:
                # A value of the wrong type breaks the other keywords too; one sentence is enough.
                return

    return check


def _type_check(kinds: Any, *, nullable: bool) -> _Check:
    names = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind in _TYPES]
    if not names:
        return _anything
    if nullable and "null" not in names:
        names.append("null")
    allowed = frozenset(kind for name in names for kind in _TYPES[name])

    def check(value: JsonValue, name: str, found: list[str]) -> None:
        # Exact types: a bool is no integer.
        if type(value) not in allowed:
            wanted = " or ".join(_ARTICLES[kind] for kind in names)
            found.append(f"{name} must be {wanted}, not {described(value)}")

    return check


def _enum_check(values: list[Any]) -> _Check:
    texts = frozenset(map(_text, values))

    def check(value: JsonValue, name: str, found: list[str]) -> None:
        if _text(value) not in texts:
            listed = ", ".join(_shown(part) for part in values[:20]) + (", …" if len(values) > 20 else "")
            near = [part for part in values if isinstance(part, str)] if isinstance(value, str) else []
            found.append(f"{name} must be one of {listed}, not {_shown(value)}{_hint(str(value), near)}")

    return check


_COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", operator.le),
    "maximum": ("at most", operator.ge),
    "exclusiveMinimum": ("greater than", operator.lt),
    "exclusiveMaximum": ("less than", operator.gt),
}
"""The function takes bound and value, in this order."""
_LENGTHS: dict[str, tuple[str, Callable[[int, str], bool]]] = {
    "minLength": ("at least", lambda bound, value: len(value) >= bound),
    "maxLength": ("at most", lambda bound, value: len(value) <= bound),
}


def _matches(expression: re.Pattern[str], value: str) -> bool:
    return expression.search(value) is not None


def _bounds(schema: JsonSchema) -> _Check | None:
    tests: list[tuple[str, Callable[[Any], bool], bool]] = []
    for keyword, (words, holds) in _COMPARISONS.items():
        bound = schema.get(keyword)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool):
            tests.append((f"{words} {bound}", partial(holds, bound), False))
    for keyword, (words, holds) in _LENGTHS.items():
        if isinstance(bound := schema.get(keyword), int):
            tests.append((f"{words} {_count(bound, 'character')} long", partial(holds, bound), True))
    if isinstance(pattern := schema.get("pattern"), str):
        # A pattern that Python cannot read (ECMA's has other classes) is not enforced.
        with suppress(re.error):
            expression = re.compile(pattern)
            tests.append((f"of the form {pattern}", partial(_matches, expression), True))
    if not tests:
        return None

    def check(value: JsonValue, name: str, found: list[str]) -> None:
        kind = type(value)
        for words, holds, textual in tests:
            applies = kind is str if textual else kind is int or kind is float
            if applies and not holds(value):
                found.append(f"{name} must be {words}, not {_shown(value)}")

    return check


# -- wording ------------------------------------------------------------------------------------------------


def described(value: JsonValue) -> str:
    """A value with its JSON type, short, for a sentence: `the string "7"`, `an array`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {_shown(value)}"
    if isinstance(value, str):
        return f"the string {_shown(value)}"
    if isinstance(value, (int, float)):
        return f"the number {_shown(value)}"
    return "an object" if isinstance(value, dict) else "an array"


def _shown(value: JsonValue) -> str:
    text = _text(value).decode("utf-8", "replace")
    return text if len(text) <= 60 else f"{text[:59]}…"


def _text(value: JsonValue) -> bytes:
    try:
        return encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(value).encode("utf-8", "backslashreplace")


def _inner(name: str, key: str) -> str:
    return f"{name[:-1]}.{key}`" if name[-1] == "`" else f"`{key}`"


def _hint(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, 1, 0.6)
    return f"; did you mean `{near[0]}`?" if near else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _has_type(option: Any, value: JsonValue) -> bool:
    if not isinstance(option, dict):
        return False
    kinds = option.get("type")
    names = kinds if isinstance(kinds, list) else [kinds]
    if kinds is None:
        names = ["object"] if "properties" in option else []
    return any(type(value) in _TYPES.get(name, ()) for name in names if isinstance(name, str))


def _joined(options: list[Any], value: JsonValue, name: str) -> str | None:
    kinds: list[str] = []
    for option in options:
        kind = option.get("type") if isinstance(option, dict) else None
        if not isinstance(kind, str) or kind not in _ARTICLES:
            return None
        if kind not in kinds:
            kinds.append(kind)
    wanted = " or ".join(_ARTICLES[kind] for kind in kinds)
    return f"{name} must be {wanted}, not {described(value)}"
