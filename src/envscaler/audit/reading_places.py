"""Places of a state: what differs between two states, how a record is called, which ids there are.

Pure. Which places a check reads is `reading`'s business.
"""

from __future__ import annotations

from collections.abc import Iterator

from envscaler.proof.sameness import place_of
from envscaler.state import Change, JsonValue, State, diff, encode, get, leaves, pointer_of, tokens

_TELLING = ("name", "title", "full_name", "label", "code", "subject", "summary", "username", "email")
_LABEL_CHARS = 60


def records(state: State) -> Iterator[tuple[str, str, dict[str, JsonValue]]]:
    """Container, key and contents of each record: the objects that an object at the top of the state holds."""
    for container, rows in state.items():
        if isinstance(rows, dict):
            for key, row in rows.items():
                if isinstance(row, dict):
                    yield container, key, row


def changes_between(before: JsonValue, after: JsonValue) -> list[Change]:
    """The places in which two values differ, each of which can be changed without the others.

    A list that grew or shrank is one place: its positions mean something only together.
    """
    found: dict[str, Change] = {}
    for change in diff(before, after):
        place = change.pointer
        path = tokens(place)
        for depth in range(len(path)):
            parent = pointer_of(*path[:depth])
            try:
                one, other = get(before, parent), get(after, parent)
            except KeyError:
                break
            if isinstance(one, list) and isinstance(other, list) and len(one) != len(other):
                place = parent
                break
        if place == change.pointer:
            found[place] = change
        else:
            found[place] = Change(pointer=place, kind="changed", before=get(before, place), after=get(after, place))
    return list(found.values())


def value_at(state: JsonValue, pointer: str) -> tuple[bool, JsonValue]:
    """Whether the state has such a place, and the value there."""
    try:
        return True, get(state, pointer)
    except KeyError:
        return False, None


def same_value(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same to a program; 20 is 20.0, and 1 is not true."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return isinstance(one, bool) is isinstance(other, bool) and one == other
    return encode(one) == encode(other)


def touches(one: str, other: str) -> bool:
    """Whether one of two places lies in the other, or is it."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def label_of(pointer: str, *states: State) -> str | None:
    """What people call the record that a place is in, where it says so; the first state that has it counts.

    A record without a name is called by the names of those that it refers to, and by a text that no other one has.
    """
    path = tokens(pointer)
    for state in states:
        there, record = value_at(state, pointer_of(*path[:2])) if len(path) > 1 else (False, None)
        if there and isinstance(record, dict):
            name = _name_of(record, path[1])
            names = [name] if name is not None else _borrowed_names(record, path[0], path[1], state)
            return _short(", ".join(names)) if names else None
    return None


def _name_of(record: dict[str, JsonValue], key: str) -> str | None:
    found = (record.get(name) for name in _TELLING)
    return next((text for text in found if isinstance(text, str) and text.strip() and text != key), None)


def _borrowed_names(record: dict[str, JsonValue], container: str, key: str, state: State) -> list[str]:
    texts = {name: value for name, value in record.items() if isinstance(value, str) and value and value != key}
    rows = state[container]
    others = [row for row in rows.values() if isinstance(row, dict)] if isinstance(rows, dict) else []
    names: dict[str, None] = {}
    for value in texts.values():
        for kept in state.values():
            referred = kept.get(value) if isinstance(kept, dict) else None
            name = _name_of(referred, value) if isinstance(referred, dict) else None
            if name is not None:
                names[name] = None
    for field, value in texts.items():
        if not any(char.isdigit() for char in value) and sum(row.get(field) == value for row in others) == 1:
            names[value] = None
    return list(names)[:2]


def _short(text: str) -> str:
    return text if len(text) <= _LABEL_CHARS else text[: _LABEL_CHARS - 1] + "…"


def pattern_of(pointer: str, state: State) -> str:
    """The place without the keys of records and the positions in lists: `/bookings/*/status`."""
    return pointer_of(*place_of(tokens(pointer), state))


def keys_of_records(*states: State) -> frozenset[str]:
    """The keys of all records, and what records in lists call their own id."""
    found: set[str] = set()
    for state in states:
        for container, rows in state.items():
            if isinstance(rows, dict):
                found.update(key for key, row in rows.items() if isinstance(row, dict))
            elif isinstance(rows, list):
                for row in rows:
                    if isinstance(row, dict):
                        found.update(_own_ids(container, row))
    return frozenset(found)


def _own_ids(container: str, row: dict[str, JsonValue]) -> Iterator[str]:
    stem = container.rstrip("s").removesuffix("ie")
    for name, value in row.items():
        if isinstance(value, str) and (name == "id" or (name.endswith("_id") and name.startswith(stem))):
            yield value


def words_in(value: JsonValue) -> Iterator[str]:
    """The texts in a value, and its whole numbers as text."""
    for _, leaf in leaves(value):
        if isinstance(leaf, str) or (isinstance(leaf, int) and not isinstance(leaf, bool)):
            yield str(leaf)


def renamed(value: JsonValue, names: dict[str, str]) -> JsonValue:
    """The value with ids, as keys and as whole texts, replaced."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, names) for part in value]
    return names.get(value, value) if isinstance(value, str) else value
