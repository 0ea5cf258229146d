"""`Reader`: finds which places of a state decide what a check says, by changing one at a time and asking again.

A place counts as read when another value there changes the answer or makes the check raise: no generated code runs
here, and what a check's text says is only used to order the trials. A place whose value never matters alone, because
two others already decide, is found only around a state in which it does; the caller chooses that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from envscaler.audit.reading_places import pattern_of, records
from envscaler.audit.reading_source import CheckText
from envscaler.editing import Edit
from envscaler.sandbox import CheckOutcome
from envscaler.sandbox.judge import Judge
from envscaler.sandbox.traceless import leaves_nothing
from envscaler.state import Change, JsonValue, State, edits_of, get, leaves, pointer_of, tokens

_TOGETHER = 200
"""States of one message: they have the time of one call."""
_TRIALS = 8_000
_SLOW_TRIALS = 200
"""Trials of a check that needs a process of its own each time."""
_ROUNDS = 4
_FAR = 1_000_000
_NEW_KEY = "~new"


@dataclass(frozen=True)
class Reading:
    """The places that decide."""

    leaves: tuple[str, ...]
    """Values that matter."""
    records: tuple[str, ...]
    """Records of which only matters that they are there."""
    containers: tuple[str, ...]
    """Containers in which a further record would matter."""
    untried: int = 0

    @property
    def places(self) -> tuple[str, ...]:
        return (*self.leaves, *self.records, *self.containers)


class Reader:
    """Asks one check about states that differ little from one."""

    def __init__(
        self, judge: Judge, source: str, text: CheckText, reset: State, clock: str, others: Sequence[str] = ()
    ) -> None:
        """
        Args:
            reset: what the check sees as `initial_state`.
            clock: the time that it sees.
            others: checks that hold of the final state and that no remedy of this one may break.
        """
        self._judge = judge
        self._source = source
        self.reset = reset
        self._clock = clock
        self._others = tuple(others)
        self.text = text
        self.trials = _TRIALS if leaves_nothing(source) else _SLOW_TRIALS
        """Trials for each question at most."""

    def alone(self) -> Reader:
        """The same, whatever becomes of other checks."""
        return Reader(self._judge, self._source, self.text, self.reset, self._clock)

    async def outcomes(
        self, state: State, edits: Sequence[Sequence[Edit]], sources: Sequence[str] = ()
    ) -> list[tuple[CheckOutcome, ...]]:
        """What the check, or others, say of each edited state."""
        together = max(1, _TOGETHER // max(1, len(sources)))
        said: list[tuple[CheckOutcome, ...]] = []
        for start in range(0, len(edits), together):
            said += await self._judge.check_edited(
                sources or [self._source],
                initial_state=self.reset,
                final_state=state,
                edits=edits[start : start + together],
                clock=self._clock,
            )
        return said

    async def _values(self, state: State, edits: Sequence[Sequence[Edit]]) -> list[bool | None]:
        return [said.value for (said,) in await self.outcomes(state, edits)]

    async def holds(self, state: State, groups: Sequence[Sequence[Change]]) -> list[bool]:
        """Whether the check holds once the changes of each group are made, and the others still do."""
        values = await self._values(state, [edits_of(group) for group in groups])
        holding = [value is True for value in values]
        asked = [place for place, holds in enumerate(holding) if holds]
        others = await self.others(state, [groups[place] for place in asked])
        for place, hold in zip(asked, others, strict=True):
            holding[place] = hold
        return holding

    async def others(self, state: State, groups: Sequence[Sequence[Change]]) -> list[bool]:
        """Whether all the other checks hold once the changes of each group are made."""
        if not self._others:
            return [True] * len(groups)
        said = await self.outcomes(state, [edits_of(group) for group in groups], self._others)
        return [all(one.value is True for one in row) for row in said]

    async def places(self, state: State) -> Reading:
        """The places of `state` that the check's answer depends on."""
        (now,) = await self._values(state, [[]])
        of_leaves = {pointer_of(*path): value for path, value in leaves(state)}
        values = dict(sorted(of_leaves.items(), key=lambda leaf: not self._is_named(leaf[0])))
        siblings = _siblings(state, values)
        read: dict[str, None] = {}
        left = self.trials
        untried = 0
        for round_ in range(_ROUNDS):
            asked = []
            for pointer, value in values.items():
                others = _others(value, siblings[pattern_of(pointer, state)])
                if pointer not in read and round_ < len(others):
                    asked.append((pointer, others[round_]))
            untried = max(0, len(asked) - left) if round_ == 0 else untried
            asked = asked[: max(0, left)]
            left -= len(asked)
            said = await self._values(state, [[[tokens(pointer), other]] for pointer, other in asked])
            read.update({pointer: None for (pointer, _), one in zip(asked, said, strict=True) if one != now})
        found = [pointer for pointer in values if pointer in read]
        kept = await self._kept(state, now, [key for key in _record_pointers(state) if not _any_in(found, key)])
        grown = await self._grown(state, now)
        return Reading(tuple(found), tuple(kept), tuple(grown), untried)

    async def _kept(self, state: State, now: bool | None, pointers: list[str]) -> list[str]:
        """Records without which the check says something else."""
        pointers = pointers[: self.trials]
        said = await self._values(state, [[[tokens(pointer)]] for pointer in pointers])
        return [pointer for pointer, one in zip(pointers, said, strict=True) if one != now]

    async def _grown(self, state: State, now: bool | None) -> list[str]:
        """Containers in which one more record makes the check say something else."""
        asked: list[tuple[str, list[Edit]]] = []
        for container, rows in state.items():
            if isinstance(rows, dict):
                pattern = next((row for row in rows.values() if isinstance(row, dict)), {})
                asked.append((pointer_of(container), [[[container, _NEW_KEY], pattern]]))
            elif isinstance(rows, list):
                asked.append((pointer_of(container), [[[container, str(len(rows))], rows[-1] if rows else {}]]))
        said = await self._values(state, [edits for _, edits in asked])
        return [pointer for (pointer, _), one in zip(asked, said, strict=True) if one != now]

    def _is_named(self, pointer: str) -> bool:
        """Whether the check's text names the way to a place; keys of records and positions in lists need no name."""
        path = tokens(pointer) or [""]
        return path[0] in self.text.names and (len(path) == 1 or path[-1] in self.text.names or path[-1].isdigit())

    def named(self, state: State, limit: int) -> list[str]:
        """Leaves whose container, record and field the check's text names."""
        names = self.text.names
        return [
            pointer_of(*path)
            for path, _ in leaves(state)
            if len(path) > 2 and path[0] in names and path[1] in names and path[-1] in names
        ][:limit]


def _record_pointers(state: State) -> list[str]:
    of_lists = [
        pointer_of(container, str(index))
        for container, rows in state.items()
        if isinstance(rows, list)
        for index in range(len(rows))
    ]
    return [pointer_of(container, key) for container, key, _ in records(state)] + of_lists


def _any_in(pointers: Iterable[str], record: str) -> bool:
    return any(pointer.startswith(f"{record}/") for pointer in pointers)


def _siblings(state: State, values: dict[str, JsonValue]) -> dict[str, list[JsonValue]]:
    """For each kind of place the first different values that the state has there."""
    found: dict[str, dict[str, JsonValue]] = {}
    for pointer in values:
        known = found.setdefault(pattern_of(pointer, state), {})
        value = get(state, pointer)
        if len(known) < _ROUNDS:
            known.setdefault(json.dumps(value, sort_keys=True), value)
    return {pattern: list(known.values()) for pattern, known in found.items()}


def _others(value: JsonValue, siblings: Sequence[JsonValue]) -> list[JsonValue]:
    """Other values to try at a place, the most telling first."""
    beside = [other for other in siblings if type(other) is not type(value) or other != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        near = [value + 1, value - 1] if abs(value) < 2**53 else [0]
        return [*near, _FAR, -_FAR]
    if isinstance(value, str):
        return [f"{value}~", *beside]
    if value is None:
        return [*beside, "~"]
    return ["~", *beside]
