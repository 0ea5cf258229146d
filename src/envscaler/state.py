"""The state of an environment as plain JSON: canonical form, digest, difference, pointers.

A state is `vars(instance)` of a program. It is made canonical once, where it leaves the program; everything
above relies on that and never normalises again. How a program is run is not this module's business.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from envscaler.errors import NotJson
from envscaler.record import Record

JsonValue = Any
"""`None`, `bool`, `int` (64 bits), `float` (finite), `str`, `list` of these, or `dict` from `str` to these."""

State = dict[str, JsonValue]
"""Maps each attribute of the program's instance to its JSON value."""

_ENCODER = msgspec.json.Encoder(order="deterministic")
_MAX_DEPTH = 200


def canonical(value: object) -> JsonValue:
    """Return `value` as plain JSON data that shares nothing with it.

    Tuples become lists, sets become lists sorted by their JSON text, keys become strings as in `json.dumps`.

    Raises:
        NotJson: with a pointer to the first part that has no exact JSON form.
    """
    return _canonical(value, "", 0)


def _canonical(value: object, pointer: str, depth: int) -> JsonValue:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return _checked_int(value, pointer)  # type: ignore[arg-type]
    if kind is float:
        return _checked_float(value, pointer)  # type: ignore[arg-type]
    if depth >= _MAX_DEPTH:
        raise NotJson(f"{pointer or 'the value'} is nested deeper than {_MAX_DEPTH} levels or contains itself")
    if isinstance(value, Mapping):
        out: dict[str, JsonValue] = {}
        for key, part in value.items():
            text = _key(key, pointer)
            out[text] = _canonical(part, f"{pointer}/{escape(text)}", depth + 1)
        return out
    if isinstance(value, (list, tuple)):
        return [_canonical(part, f"{pointer}/{index}", depth + 1) for index, part in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        parts = [_canonical(part, f"{pointer}/*", depth + 1) for part in value]
        return sorted(parts, key=encode)
    # Subclasses (IntEnum, a str with methods of its own) are reduced to the plain value they stand for.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _checked_int(int.__int__(value), pointer)
    if isinstance(value, float):
        return _checked_float(float.__float__(value), pointer)
    raise NotJson(f"{pointer or 'the value'} is a {kind.__name__}, which JSON cannot hold")


def _checked_int(value: int, pointer: str) -> int:
    if not -(2**63) <= value < 2**64:
        raise NotJson(f"{pointer or 'the value'} is an integer beyond 64 bits")
    return value


def _checked_float(value: float, pointer: str) -> float:
    if not math.isfinite(value):
        raise NotJson(f"{pointer or 'the value'} is {value}, which JSON cannot hold")
    return value


def _key(key: object, pointer: str) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, (int, float)):
        return str(key)
    raise NotJson(f"{pointer or 'the value'} has a key of type {type(key).__name__}, which JSON cannot hold")


def encode(value: JsonValue) -> bytes:
    """Canonical JSON text of canonical data: sorted keys, no spaces, UTF-8. Equal data give equal bytes."""
    return _ENCODER.encode(value)


def digest(value: JsonValue) -> str:
    """A short hexadecimal digest (blake2b, 128 bits) of canonical data."""
    return blake2b(encode(value), digest_size=16).hexdigest()


def text_digest(text: str) -> str:
    """The digest of a text, of the same form as that of a state."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# -- pointers (RFC 6901) ------------------------------------------------------------------------------------


def escape(token: str) -> str:
    """One path component in the form that a JSON pointer needs."""
    return token.replace("~", "~0").replace("/", "~1")


def tokens(pointer: str) -> list[str]:
    """The path components of a JSON pointer.

    Raises:
        ValueError: if `pointer` is neither empty nor begins with a slash.
    """
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise ValueError(f"not a JSON pointer: {pointer!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def get(value: JsonValue, pointer: str) -> JsonValue:
    """The part of `value` that `pointer` names.

    Raises:
        KeyError: if there is no such part.
    """
    for token in tokens(pointer):
        try:
            value = value[int(token)] if isinstance(value, list) else value[token]
        except (KeyError, IndexError, ValueError, TypeError):
            raise KeyError(pointer) from None
    return value


def replaced(value: JsonValue, pointer: str, part: JsonValue) -> JsonValue:
    """A copy of `value` in which `pointer` names `part`; only the containers on the path are copied.

    Raises:
        KeyError: if the path does not exist (a new key of an object is allowed as its last component).
    """
    path = tokens(pointer)
    return _replaced(value, path, part, pointer)


def _replaced(value: JsonValue, path: list[str], part: JsonValue, pointer: str) -> JsonValue:
    if not path:
        return part
    head, rest = path[0], path[1:]
    if isinstance(value, dict):
        if rest and head not in value:
            raise KeyError(pointer)
        return {**value, head: _replaced(value.get(head), rest, part, pointer)}
    if isinstance(value, list) and head.isdigit() and int(head) < len(value):
        index = int(head)
        return [*value[:index], _replaced(value[index], rest, part, pointer), *value[index + 1 :]]
    raise KeyError(pointer)


# -- difference ---------------------------------------------------------------------------------------------


class Change(Record):
    """One place in which two states differ."""

    pointer: str
    """JSON pointer of the place."""
    kind: Literal["added", "removed", "changed"]
    before: JsonValue = None
    """The value before; None when added."""
    after: JsonValue = None
    """The value after; None when removed."""


def diff(before: JsonValue, after: JsonValue) -> tuple[Change, ...]:
    """The places in which two canonical values differ, in document order, as deep as the structures agree."""
    return tuple(_diff(before, after, ""))


def _diff(before: JsonValue, after: JsonValue, pointer: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key, part in before.items():
            place = f"{pointer}/{escape(key)}"
            if key in after:
                yield from _diff(part, after[key], place)
            else:
                yield Change(pointer=place, kind="removed", before=part)
        for key, part in after.items():
            if key not in before:
                yield Change(pointer=f"{pointer}/{escape(key)}", kind="added", after=part)
    elif isinstance(before, list) and isinstance(after, list):
        for index, (left, right) in enumerate(zip(before, after, strict=False)):
            yield from _diff(left, right, f"{pointer}/{index}")
        for index in range(len(after), len(before)):
            yield Change(pointer=f"{pointer}/{index}", kind="removed", before=before[index])
        for index in range(len(before), len(after)):
            yield Change(pointer=f"{pointer}/{index}", kind="added", after=after[index])
    elif type(before) is not type(after) or before != after:
        yield Change(pointer=pointer, kind="changed", before=before, after=after)
