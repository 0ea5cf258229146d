"""Finds out which values of an episode depend on chance and which on the clock, by playing its calls otherwise.

Nothing is guessed from the look of a value: a call is made again from the same state, once with another seed and once
at another time, and what comes out differently depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from envscaler.errors import ProgramError
from envscaler.rollout.likeness import Leaf, Pair, differences
from envscaler.sandbox import Program, Sandbox, Session, Snapshot
from envscaler.state import JsonValue, State, encode

Source = Literal["chance", "clock"]
_APART = timedelta(days=400, hours=1, minutes=1, seconds=1, milliseconds=1)
"""Changes every part of a time stamp."""


@dataclass(frozen=True, slots=True)
class Made:
    """One call that was made, and what came of it."""

    before: Snapshot
    name: str
    arguments: dict[str, JsonValue]
    result: JsonValue


class Volatile:
    """The values of one episode that would be others with another seed or at another time."""

    def __init__(self, sandbox: Sandbox, program: Program, initial_state: State, seed: int, clock: str) -> None:
        self._sandbox = sandbox
        self._program = program
        self._initial_state = initial_state
        self._seed = seed
        self._clock = clock
        self._calls: list[Made] = []
        self._tried = 0
        self._found: dict[Leaf | None, Source] = {}
        """Texts and numbers; lists and objects as their JSON text."""
        self._places: dict[tuple[int, str], Source] = {}
        """Index of a call and pointer in its result, for values that are too common to be known by themselves."""

    def note(self, call: Made) -> None:
        """Remember a call that gave a result; it is tried otherwise only when somebody asks."""
        self._calls.append(call)

    async def source(self, pair: Pair, now: State) -> Source | None:
        """What a value in the result of the last call depends on; None when on neither.

        Args:
            pair: the value as it differs from the recorded one.
            now: the present state.
        """
        key, place = _key(pair.ours), (len(self._calls) - 1, pair.pointer)
        if key not in self._found and place not in self._places:
            await self._try_all(now)
        return self._found[key] if key in self._found else self._places.get(place)

    async def _try_all(self, now: State) -> None:
        if self._tried == len(self._calls) and self._tried:
            return
        session = await self._sandbox.open(self._program, self._initial_state, seed=self._seed + 1, clock=self._clock)
        try:
            if not self._tried and self._calls:
                built = self._calls[0].before.state
                self._compare(built, await session.state(), "chance")
                other = await self._sandbox.open(
                    self._program, self._initial_state, seed=self._seed, clock=later(self._clock)
                )
                try:
                    self._compare(built, await other.state(), "clock")
                finally:
                    await other.close()
            for index in range(self._tried, len(self._calls)):
                call = self._calls[index]
                after = self._calls[index + 1].before.state if index + 1 < len(self._calls) else now
                await self._try(session, index, call, after)
        finally:
            await session.close()
        self._tried = len(self._calls)

    async def _try(self, session: Session, index: int, call: Made, after: State) -> None:
        before = call.before
        for source, moment in (
            ("chance", replace(before, seed=before.seed + 1)),
            ("clock", replace(before, clock=later(before.clock))),
        ):
            try:
                await session.restore(moment)
            except ProgramError:
                # A state that the program takes only as its own work tells nothing.
                continue
            outcome = await session.call(call.name, call.arguments)
            kind: Source = "chance" if source == "chance" else "clock"
            self._compare(call.result, outcome.result, kind, index)
            self._compare(after, await session.state(), kind)

    def _compare(self, ours: JsonValue, otherwise: JsonValue, source: Source, index: int | None = None) -> None:
        for pair in differences(ours, otherwise):
            # What depends on both is first of all made by chance: an id with the date in it.
            key = _key(pair.recorded)
            if key is not None:
                self._found.setdefault(key, source)
            if index is not None:
                self._places.setdefault((index, pair.pointer), source)


def _key(value: JsonValue) -> Leaf | None:
    if value is None or isinstance(value, bool):
        return None
    return value if isinstance(value, (str, int, float)) else f"\0{encode(value).decode()}"


def later(clock: str) -> str:
    """An ISO 8601 time that differs from `clock` in every part."""
    return (datetime.fromisoformat(clock) + _APART).isoformat()
