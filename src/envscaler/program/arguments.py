"""`SchemaChecker`: a JSON Schema compiled once into functions that say in sentences what is wrong with a value.

Covers what tool schemas use (types, enums, unions, objects, arrays, bounds, local references); `format`, unknown and
malformed keywords are not enforced, and a reference that leads back to itself asks nothing. Any JSON is taken as schema
and as value, in time that grows with both and not with the choices between them. An integer is written without a
decimal point, since the value reaches a Python method.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import msgspec

from envscaler.record import JsonSchema
from envscaler.state import JsonValue, encode, get


class Judged:
    """What references have been found to say of values. Without it, unions of references take exponential time."""

    __slots__ = ("depth", "faults", "named")

    def __init__(self, *, named: bool = True) -> None:
        """
        Args:
            named: whether the sentences matter, which name the place of a value, or only whether there are any.
        """
        self.named = named
        self.faults: dict[tuple[str, int, str], tuple[str, ...]] = {}
        """By pointer, identity of the value, which must stay alive, and its name."""
        self.depth = 0
        """References that are being followed."""


_Check = Callable[[JsonValue, str, list[str], Judged | None], None]
"""Appends to the list what is wrong with the value, which the text names. Only references use the last argument."""

_DEEPEST_SCHEMA = 64
"""Parts of a schema that lie deeper are not enforced."""
_DEEPEST_VALUE = 100
"""References followed within one another; beyond, the value is refused. Python's own limit lies about twice as far."""

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
        self.schema = schema
        self._references: dict[str, _Check] = {}
        self._parts: dict[int, _Check] = {}
        self._refers = False
        self._check = self._compiled(schema)

    def faults(self, value: JsonValue, name: str) -> tuple[str, ...]:
        """What is wrong with `value`, a sentence each; empty when it satisfies the schema.

        Args:
            name: what the sentences call the value as a whole, not empty.
        """
        found: list[str] = []
        try:
            self._check(value, name, found, Judged() if self._refers else None)
        except RecursionError:
            return (f"{name} is nested too deeply",)
        return tuple(found)

    def allows(self, part: Any, value: JsonValue, judged: Judged) -> bool:
        """Whether a value satisfies a part of the schema, which is told by its identity.

        Args:
            judged: what is known of values so far.

        Raises:
            RecursionError: if the value is nested too deeply; `judged` is of no use then.
        """
        check = self._parts.get(id(part))
        if check is None:
            check = self._parts[id(part)] = self._compiled(part)
        found: list[str] = []
        check(value, "it", found, judged)
        return not found

    def _compiled(self, schema: Any, depth: int = 0) -> _Check:
        if schema is False:
            return _nothing
        if not isinstance(schema, dict) or depth > _DEEPEST_SCHEMA:
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
                checks.append(self._union(schema[keyword], depth))
        if isinstance(schema.get("allOf"), list):
            checks.extend(self._compiled(part, depth + 1) for part in schema["allOf"])
        if {"properties", "required", "additionalProperties"} & set(schema):
            checks.append(self._object(schema, depth))
        if {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"} & set(schema):
            checks.append(self._array(schema, depth))
        if bounds := _bounds(schema):
            checks.append(bounds)
        if not checks:
            return _anything
        return checks[0] if len(checks) == 1 else _all(checks)

    def _reference(self, pointer: str) -> _Check:
        """Resolved at the first use, so that a schema may contain itself."""
        self._refers = True

        def check(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
            assert judged is not None
            key = (pointer, id(value), name if judged.named else "")
            known = judged.faults.get(key)
            if known is None:
                if judged.depth == _DEEPEST_VALUE:
                    found.append(f"{name} is nested too deeply")
                    return
                if pointer not in self._references:
                    self._references[pointer] = self._compiled(referenced(self.schema, pointer))
                faults: list[str] = []
                # Until it is known: what leads back here with the same value asks nothing more of it.
                judged.faults[key] = ()
                judged.depth += 1
                self._references[pointer](value, name, faults, judged)
                judged.depth -= 1
                judged.faults[key] = known = tuple(faults)
            found += known

        return check

    def _union(self, options: list[Any], depth: int) -> _Check:
        branches = [self._compiled(option, depth + 1) for option in options]

        def check(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
            closest: list[str] | None = None
            outsiders: list[str] = []
            for option, branch in zip(options, branches, strict=True):
                faults: list[str] = []
                branch(value, name, faults, judged)
                if not faults:
                    return
                if _has_type(option, value):
                    # The branch of the value's own type says best what is wrong inside it.
                    closest = closest if closest is not None else faults
                else:
                    outsiders += [fault for fault in faults[:3] if fault not in outsiders]
            if closest is not None:
                found += closest
            else:
                # Cut, because unions within unions would join the joined.
                found.append(_joined(options, value, name) or _cut(" or ".join(outsiders[:3]), 400))

        return check

    def _object(self, schema: JsonSchema, depth: int) -> _Check:
        checks = {key: self._compiled(part, depth + 1) for key, part in _mapping(schema.get("properties")).items()}
        required = tuple(key for key in _listing(schema.get("required")) if isinstance(key, str))
        others = schema.get("additionalProperties", True)
        rest = self._compiled(others, depth + 1)

        def check(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
            if not isinstance(value, dict):
                return
            missing = [key for key in required if key not in value]
            extra = [] if others is True or others == {} else [key for key in value if key not in checks]
            for key in missing:
                found.append(f"missing required argument `{key}`" if name == _ARGUMENTS else f"{name} lacks `{key}`")
            for key, part in value.items():
                branch = checks.get(key)
                if branch is not None:
                    branch(part, _inner(name, key), found, judged)
            for key in extra:
                if others is not False:
                    rest(value[key], _inner(name, key), found, judged)
                    continue
                known = [other for other in checks if other not in value]
                told = f"unknown argument `{key}`" if name == _ARGUMENTS else f"{name} has no `{key}`"
                found.append(told + _hint(key, known))

        return check

    def _array(self, schema: JsonSchema, depth: int) -> _Check:
        prefix = [self._compiled(part, depth + 1) for part in _listing(schema.get("prefixItems"))]
        each = self._compiled(schema.get("items"), depth + 1)
        least, most = schema.get("minItems"), schema.get("maxItems")
        unique = schema.get("uniqueItems") is True

        def check(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
            if not isinstance(value, (list, tuple)):
                return
            if type(least) is int and len(value) < least:
                found.append(f"{name} needs at least {_count(least, 'element')}, it has {len(value)}")
            if type(most) is int and len(value) > most:
                found.append(f"{name} takes at most {_count(most, 'element')}, it has {len(value)}")
            if each is not _anything or prefix:
                for index, part in enumerate(value):
                    branch = prefix[index] if index < len(prefix) else each
                    branch(part, f"{name[:-1]}[{index}]`" if name[-1] == "`" else f"`[{index}]`", found, judged)
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
    return parameters_checker(schema).faults(arguments, _ARGUMENTS)


def parameters_checker(schema: JsonSchema) -> SchemaChecker:
    """The checker behind `argument_faults`."""
    try:
        return _checker(_KEYS.encode(schema))
    except (ValueError, OverflowError, RecursionError):
        # Integers beyond 64 bits, halves of characters or nesting without measure: JSON, but none that packs.
        return SchemaChecker(closed_parameters(schema))


def closed_parameters(schema: Any) -> JsonSchema:
    """The schema as calls are held to it: names that it does not declare are wrong unless it says otherwise."""
    return {"additionalProperties": False, **schema} if isinstance(schema, dict) else {}


def referenced(root: JsonSchema, pointer: str) -> Any:
    """What a local reference (`#/$defs/…`) names in `root`; None where there is nothing, or it leads elsewhere."""
    if pointer in ("#", "#/"):
        return root
    try:
        return get(root, pointer[1:]) if pointer.startswith("#") else None
    except (KeyError, ValueError):
        return None


_KEYS = msgspec.msgpack.Encoder()
"""Faster than JSON; the order of keys need not be canonical, since it only decides what is compiled twice."""


@lru_cache(maxsize=4096)
def _checker(packed: bytes) -> SchemaChecker:
    return SchemaChecker(closed_parameters(msgspec.msgpack.decode(packed)))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listing(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _anything(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
    return None


def _nothing(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
    found.append(f"{name} is not allowed")


def _all(checks: list[_Check]) -> _Check:
    def check(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
        before = len(found)
        for part in checks:
            part(value, name, found, judged)
            if len(found) > before:
                # A value of the wrong type breaks the other keywords too; one sentence is enough.
                return

    return check


def _type_check(kinds: Any, *, nullable: bool) -> _Check:
    names = [
        kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str) and kind in _TYPES
    ]
    if not names:
        return _anything
    if nullable and "null" not in names:
        names.append("null")
    allowed = frozenset(kind for name in names for kind in _TYPES[name])

    def check(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
        # Exact types: a bool is no integer.
        if type(value) not in allowed:
            wanted = " or ".join(_ARTICLES[kind] for kind in names)
            found.append(f"{name} must be {wanted}, not {described(value)}")

    return check


def _enum_check(values: list[Any]) -> _Check:
    texts = frozenset(map(_text, values))

    def check(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
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


_LONGEST_MATCHED = 256
"""Characters of a text that is held against a pattern: matching takes more than proportional time."""
_ESCAPED = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)
_INNERMOST = re.compile(r"\(([^()]*)\)([*+?{]?)")


def _expression(pattern: str) -> re.Pattern[str] | None:
    """None for what Python cannot read (ECMA's patterns have other classes), or matches in exponential time; neither
    is enforced."""
    if not _is_tame(pattern):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None


def _is_tame(pattern: str) -> bool:
    """Whether no group that repeats or chooses is itself repeated, as far as a look at the text tells."""
    text = _ESCAPED.sub("x", pattern)
    while (group := _INNERMOST.search(text)) is not None:
        inside, repeated = group.groups()
        moves = any(letter in inside for letter in "*+{|")
        if moves and repeated in ("*", "+", "{"):
            return False
        # An outer group that is repeated has to know of it.
        text = text[: group.start()] + ("{" if moves else "x") + repeated + text[group.end() :]
    return True


def _matches(expression: re.Pattern[str], value: str) -> bool:
    return len(value) > _LONGEST_MATCHED or expression.search(value) is not None


def _bounds(schema: JsonSchema) -> _Check | None:
    tests: list[tuple[str, Callable[[Any], bool], bool]] = []
    for keyword, (words, holds) in _COMPARISONS.items():
        bound = schema.get(keyword)
        # Only NaN is not itself; nothing could satisfy it.
        if isinstance(bound, (int, float)) and not isinstance(bound, bool) and bound == bound:
            tests.append((f"{words} {_shown(bound)}", partial(holds, bound), False))
    for keyword, (words, holds) in _LENGTHS.items():
        if type(bound := schema.get(keyword)) is int:
            tests.append((f"{words} {_count(bound, 'character')} long", partial(holds, bound), True))
    if isinstance(pattern := schema.get("pattern"), str) and (expression := _expression(pattern)) is not None:
        tests.append((f"of the form {pattern}", partial(_matches, expression), True))
    if not tests:
        return None

    def check(value: JsonValue, name: str, found: list[str], judged: Judged | None) -> None:
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
    return _cut(_text(value).decode("utf-8", "replace"), 60)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _text(value: JsonValue) -> bytes:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value).encode()  # JSON would have null for it
    try:
        return encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    try:
        return repr(value).encode("utf-8", "backslashreplace")
    except (ValueError, RecursionError):
        # An integer of thousands of digits, or nesting as deep: nothing that came as JSON text.
        return f"<{type(value).__name__}>".encode()


def _inner(name: str, key: str) -> str:
    return f"{name[:-1]}.{key}`" if name[-1] == "`" else f"`{key}`"


def _hint(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, 1, 0.6)
    return f"; did you mean `{near[0]}`?" if near else ""


def _count(number: int, noun: str) -> str:
    return f"{_shown(number)} {noun}" if number == 1 else f"{_shown(number)} {noun}s"


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
