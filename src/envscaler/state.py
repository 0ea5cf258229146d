"""The state of an environment as plain JSON: canonical form, digest, difference, pointers.

A state is `vars(instance)` of a program. It is made canonical once, where it leaves the program; everything
above relies on that and never normalises again. How a program is run is not this module's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from envscaler.canonical import JsonValue, State, canonical, digest, encode, escape, from_json, text_digest, to_json
from envscaler.editing import Edit, edit
from envscaler.record import Record

__all__ = [
    "Change",
    "JsonValue",
    "State",
    "canonical",
    "copied",
    "diff",
    "digest",
    "edits_of",
    "encode",
    "escape",
    "get",
    "leaves",
    "patched",
    "pointer_of",
    "replaced",
    "text_digest",
    "tokens",
]

# -- pointers (RFC 6901) ------------------------------------------------------------------------------------


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


def pointer_of(*path: str) -> str:
    """The JSON pointer of a path."""
    return "".join(f"/{escape(part)}" for part in path)


def leaves(value: JsonValue, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    """The parts of a value that are no containers, or empty ones, with the path to each."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list) and value:
        for index, part in enumerate(value):
            yield from leaves(part, (*path, str(index)))
    else:
        yield path, value


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


def edits_of(changes: Iterable[Change]) -> list[Edit]:
    """The changes in a form that can be carried out one after the other: what goes from lists, last first."""
    listed = list(changes)
    removed = [change for change in listed if change.kind == "removed"]
    made: list[Edit] = [[tokens(change.pointer), change.after] for change in listed if change.kind != "removed"]
    return made + [[tokens(change.pointer)] for change in reversed(removed)]


def copied(value: JsonValue) -> JsonValue:
    """A copy of plain JSON data that shares nothing with it."""
    return from_json(to_json(value))


def patched(value: JsonValue, changes: Iterable[Change]) -> JsonValue:
    """A copy of `value` with these changes made, whatever `before` they name.

    Raises:
        EditError: if a place does not exist.
    """
    return edit(copied(value), edits_of(changes))


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
