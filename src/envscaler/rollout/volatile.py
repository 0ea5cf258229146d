"""Finds out which values of an episode depend on chance and which on the clock, by playing its calls otherwise.

Nothing is guessed from the look of a value: the same calls are made once with another seed and once at another time,
and what comes out differently depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from envscaler.errors import ProgramError
from envscaler.rollout.likeness import Ids, Pair, differences, is_clock_id
from envscaler.sandbox import Program, Sandbox, Session
from envscaler.state import JsonValue, State, encode

Source = Literal["chance", "clock"]
_APART = timedelta(days=400, hours=1, minutes=1, seconds=1, milliseconds=1)
"""Changes every part of a time stamp."""


@dataclass(frozen=True, slots=True)
class Made:
    """One call that was made, and what came of it."""

    name: str
    arguments: dict[str, JsonValue]
    result: JsonValue
    """None where it failed."""
    before: State
    """The state in which it was made."""


@dataclass
class _Variant:
    """The same episode with another seed or at another time."""

    source: Source
    session: Session
    ids: Ids = field(default_factory=Ids)
    """Ids of the replay, mapped onto this variant's."""
    calls: int = 0


class Volatile:
    """The values of one episode that would be others with another seed or at another time."""

    def __init__(self, sandbox: Sandbox, program: Program, initial_state: State, seed: int, clock: str) -> None:
        self._sandbox = sandbox
        self._program = program
        self._initial_state = initial_state
        self._seed = seed
        self._clock = clock
        self._calls: list[Made] = []
        self._variants: list[_Variant] = []
        self._opened = False
        self._found: dict[str, Source] = {}
        """Values as JSON text; those that are common are known by their place only."""
        self._places: dict[tuple[int, str], Source] = {}
        """Index of a call and pointer in its result."""

    def note(self, call: Made) -> None:
        """Remember a call; it is made otherwise only when somebody asks."""
        self._calls.append(call)

    async def source(self, pair: Pair, now: State) -> Source | None:
        """What a value in the result of the last call depends on; None when on neither.

        Args:
            pair: the value as it differs from the recorded one.
            now: the present state.
        """
        await self._catch_up(now)
        place = self._places.get((len(self._calls) - 1, pair.pointer))
        return place if place is not None else self._found.get(_text(pair.ours))

    async def close(self) -> None:
        """End what was opened to find out; idempotent."""
        variants, self._variants = self._variants, []
        for variant in variants:
            await variant.session.close()

    async def _catch_up(self, now: State) -> None:
        if not self._opened:
            self._opened = True
            otherwise: tuple[tuple[Source, int, str], ...] = (
                ("chance", self._seed + 1, self._clock),
                ("clock", self._seed, later(self._clock)),
            )
            for source, seed, clock in otherwise:
                try:
                    session = await self._sandbox.open(self._program, self._initial_state, seed=seed, clock=clock)
                except ProgramError:
                    # One that cannot be built at another time tells nothing, and is no fault of the episode.
                    continue
                self._variants.append(_Variant(source, session))
            for variant in self._variants:
                await self._compare_state(variant, self._calls[0].before if self._calls else now)
        for variant in self._variants:
            while variant.calls < len(self._calls):
                index = variant.calls
                call = self._calls[index]
                after = self._calls[index + 1].before if index + 1 < len(self._calls) else now
                outcome = await variant.session.call(call.name, variant.ids.as_ours(call.arguments))
                self._compare(variant, call.result, outcome.result, index)
                await self._compare_state(variant, after)
                variant.calls += 1

    async def _compare_state(self, variant: _Variant, ours: State) -> None:
        self._compare(variant, ours, await variant.session.state(), None)

    def _compare(self, variant: _Variant, ours: JsonValue, otherwise: JsonValue, index: int | None) -> None:
        # What differs but for ids that are mapped already is to be told of all values, so nothing is mapped here.
        for pair in differences(ours, otherwise):
            if index is not None:
                # What depends on both is first of all made by chance: an id with the date in it.
                self._places.setdefault((index, pair.pointer), variant.source)
            if pair.recorded is not None and not isinstance(pair.recorded, bool):
                self._found.setdefault(_text(pair.recorded), variant.source)
            if variant.source == "chance" or is_clock_id(pair.recorded, pair.ours):
                variant.ids.learn(pair.recorded, pair.ours)


def _text(value: JsonValue) -> str:
    return encode(value).decode("utf-8", "replace")


def later(clock: str) -> str:
    """An ISO 8601 time that differs from `clock` in every part."""
    return (datetime.fromisoformat(clock) + _APART).isoformat()
