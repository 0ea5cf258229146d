"""Wrong final states made from a solved one, as edits of it; and final states with an edit too many.

Each contradicts what the solution brought about, or changes what it left alone. Those that calls are needed for are
made in `calls`.

Source: ours; the probes follow what audits of published checks found (`docs/proof.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from envscaler.editing import Edit
from envscaler.evidence import ProbeKind
from envscaler.proof.fields import Fields, records_of
from envscaler.proof.sameness import Sameness, created_keys
from envscaler.state import Change, JsonValue, State, diff, leaves, tokens

_SHOWN = 60
"""Characters of a value that are told."""
_TWINS = 2
"""Untouched records of a container that are tried: the one most like those that were changed, and another."""
_FIELDS = 3
"""Fields of an untouched record that are tried."""


@dataclass(frozen=True)
class Mutant:
    """A final state that is wrong in one way, as edits of the solved one."""

    kind: ProbeKind
    what: str
    edits: tuple[Edit, ...]


class Mutants:
    """The wrong final states of one scenario.

    Args:
        initial: the state right after reset.
        solved: the final state of the solution.
        sameness: what counts.
    """

    def __init__(self, initial: State, solved: State, fields: Fields, sameness: Sameness) -> None:
        self._initial = initial
        self._solved = solved
        self._fields = fields
        self._sameness = sameness
        self._changes = diff(initial, solved)
        self._created = created_keys(initial, solved)
        self._touched: dict[str, dict[str, set[str]]] = {}
        """Container → key of a record → its fields that the solution changed."""
        for change in self._changes:
            path = tokens(change.pointer)
            if len(path) >= 2 and path[0] in fields.containers:
                self._touched.setdefault(path[0], {}).setdefault(path[1], set()).update(path[2:3])

    def wrong(self) -> Iterator[Mutant]:
        """States in which something that the solution changed is not as it should be."""
        for change in self._changes:
            yield from self._undone(change)
        for path, value, before in self._values():
            for other in self._fields.others(path, value, self._solved, before):
                kind: ProbeKind = "near_miss" if other.near else "altered"
                yield Mutant(kind, _told(path, value, other.value), ([list(path), other.value],))
        yield from self._swapped()

    def too_much(self) -> Iterator[Mutant]:
        """States in which something is changed that the solution left alone."""
        for container, ids in self._fields.containers.items():
            touched = self._touched.get(container, {})
            spared = [key for key in ids if key not in touched and key in records_of(self._solved, container)]
            for key in _twins(self._initial[container], list(touched), spared)[:_TWINS]:
                yield from islice(self._meddled(container, key, self._solved[container][key]), _FIELDS)
            for key in [key for key in touched if key in ids][:_TWINS]:
                record = records_of(self._solved, container).get(key)
                if isinstance(record, dict):
                    rest = {name: value for name, value in record.items() if name not in touched[key]}
                    yield from islice(self._meddled(container, key, rest), _FIELDS)
            if spared:
                path = [container, spared[-1]]
                yield Mutant("over_edit", f"/{container}/{spared[-1]} removed", ([path],))
                yield self._copied(container, spared[-1])
        for name, value in self._solved.items():
            if name in self._fields.containers or self._initial.get(name) != value:
                continue
            if isinstance(value, list) and value:
                yield Mutant("over_edit", f"/{name}: the last entry twice", ([[name, len(value)], value[-1]],))
            elif not isinstance(value, (dict, list)) and value is not None and not self._is_exempt((name,), value):
                yield from islice(self._replaced((name,), value), 1)

    # -- what was to be done --------------------------------------------------------------------------------

    def _undone(self, change: Change) -> Iterator[Mutant]:
        path = tokens(change.pointer)
        if not path or self._is_exempt(path, change.after):
            return
        if change.kind == "added":
            what = f"{change.pointer} is not there"
            yield Mutant("undone", what, ([path],))
        else:
            what = f"{change.pointer} is still {_shown(change.before)}"
            at = path
            if change.kind == "removed" and isinstance(_parent(self._solved, path), list):
                at = [*path[:-1], str(len(_parent(self._solved, path)))]
            yield Mutant("undone", what, ([at, change.before],))

    def _values(self) -> Iterator[tuple[tuple[str, ...], JsonValue, JsonValue]]:
        """The values that the solution wrote, with their paths and what stood there before."""
        for change in self._changes:
            if change.kind == "removed":
                continue
            at = tuple(tokens(change.pointer))
            for path, value in leaves(change.after, at):
                made_up = isinstance(value, str) and value in self._created
                if value is not None and not made_up and not self._is_exempt(path, value):
                    yield path, value, change.before if path == at else None

    def _swapped(self) -> Iterator[Mutant]:
        """The changes of a record made to the record that is most like it instead."""
        for container, touched in self._touched.items():
            before, after = self._initial[container], records_of(self._solved, container)
            spared = [key for key in before if key not in touched and key in after]
            for key, names in touched.items():
                twin = next(iter(_twins(before, [key], spared)), None)
                if twin is None or key not in before or not isinstance(before[key], dict):
                    continue
                if key not in after:
                    edits: list[Edit] = [[[container, key], before[key]], [[container, twin]]]
                elif isinstance(after[key], dict) and isinstance(before[twin], dict):
                    edits = [[[container, key], before[key]]]
                    edits += [[[container, twin, name], after[key][name]] for name in names if name in after[key]]
                else:
                    continue
                yield Mutant("swapped", f"/{container}/{twin} instead of /{container}/{key}", tuple(edits))

    def _is_exempt(self, path: Sequence[str], value: JsonValue) -> bool:
        return self._fields.is_kept(path, value) or self._sameness.is_exempt(path, self._solved)

    # -- what was to be left alone --------------------------------------------------------------------------

    def _meddled(self, container: str, key: str, record: JsonValue) -> Iterator[Mutant]:
        if not isinstance(record, dict):
            return
        for name, value in record.items():
            path = (container, key, name)
            if isinstance(value, str) and value == key:
                continue
            if isinstance(value, list):
                told, other = ("emptied", []) if value else ("has an entry more", ["extra"])
                yield Mutant("over_edit", f"/{container}/{key}/{name} {told}", ([list(path), other],))
            elif value is None or isinstance(value, dict) or self._is_exempt(path, value):
                continue
            else:
                yield from islice(self._replaced(path, value), 1)

    def _replaced(self, path: tuple[str, ...], value: JsonValue) -> Iterator[Mutant]:
        for other in self._fields.others(path, value, self._solved):
            yield Mutant("over_edit", _told(path, value, other.value), ([list(path), other.value],))

    def _copied(self, container: str, key: str) -> Mutant:
        record = self._solved[container][key]
        new = f"{key}-2"
        copy = {name: new if value == key else value for name, value in record.items()}
        return Mutant("over_edit", f"/{container}/{new} added, a copy of {key}", ([[container, new], copy],))


def _twins(records: State, targets: Sequence[str], spared: Sequence[str]) -> list[str]:
    """The spared records, those most like the targets first."""
    wanted = [records[key] for key in targets if isinstance(records.get(key), dict)]

    def likeness(key: str) -> int:
        record: Any = records.get(key)
        if not isinstance(record, dict):
            return -1
        return max((sum(record.get(name) == value for name, value in one.items()) for one in wanted), default=0)

    return sorted(spared, key=lambda key: -likeness(key))


def _parent(state: State, path: Sequence[str]) -> JsonValue:
    value: JsonValue = state
    for token in path[:-1]:
        value = value[int(token)] if isinstance(value, list) else value.get(token)
    return value


def _told(path: Sequence[str], value: JsonValue, other: JsonValue) -> str:
    return f"/{'/'.join(path)}: {_shown(other)} instead of {_shown(value)}"


def _shown(value: JsonValue) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
