"""Other ways to play a scenario: equally right ones, and ones that leave something out or take the wrong record.

Whether a way is right is not decided here: its final state is held against that of the solution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from envscaler.evidence import ProbeKind
from envscaler.probe import PlannedCall, between, planned, random_look_ups, wrong_arguments
from envscaler.proof.fields import Fields
from envscaler.proof.playing import Played
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton

_LATER = timedelta(hours=1, seconds=1, milliseconds=1)
_REORDERED = 3
"""Orders of the calls that are tried at most."""
_MISDIRECTED = 4
"""Calls that are made with a neighbour's id at most."""
_LOOK_UPS = 3


@dataclass(frozen=True)
class Way:
    """Calls to be played instead of the solution's."""

    kind: ProbeKind
    what: str
    calls: tuple[PlannedCall, ...]
    seed: int | None = None
    clock: str | None = None


class Ways:
    """The ways of one scenario.

    Args:
        played: what its solution did.
    """

    def __init__(self, skeleton: EnvSkeleton, scenario: Scenario, played: Played, fields: Fields) -> None:
        self._skeleton = skeleton
        self._scenario = scenario
        self._played = played
        self._fields = fields
        self._plan = planned(scenario.solution or ())
        self._writing = [index for index, changed in enumerate(played.changed) if changed]

    def otherwise(self) -> Iterator[Way]:
        """The very same calls with another seed and at another time."""
        calls, later = tuple(self._plan), datetime.fromisoformat(self._scenario.clock) + _LATER
        yield Way("variant", "with another seed", calls, seed=(self._scenario.seed + 1) % 2**31)
        yield Way("variant", "an hour later", calls, clock=later.isoformat())

    def right(self) -> Iterator[Way]:
        """Ways that come to the same, if they do."""
        plan = self._plan
        rng = Random(f"{self._scenario.id}/{self._scenario.seed}")
        state, entities = self._scenario.initial_state, self._skeleton.entities
        looks = random_look_ups(self._skeleton.tools, state, entities, rng, _LOOK_UPS)
        if looks:
            yield Way("variant", "looking around first", (*looks, *plan))
            yield Way("variant", "looking something up before each call", tuple(between(plan, looks)))
        refused = self._refused(rng)
        if refused is not None and plan:
            yield Way(
                "variant", f"after a call of {refused.call.name} that is refused", (*plan[:-1], refused, plan[-1])
            )
        if len(self._writing) < len(plan):
            literal = [PlannedCall(_literal(self._played.made[index])) for index in self._writing]
            yield Way("variant", "without looking anything up", tuple(literal))
        if self._writing:
            again = PlannedCall(_literal(self._played.made[self._writing[-1]]))
            yield Way("variant", f"{again.call.name} twice", (*plan, again))
        yield from self._reordered()
        for number, calls in enumerate(self._scenario.alternatives, 1):
            yield Way("alternative", f"alternative {number}", tuple(planned(calls)))

    def wrong(self) -> Iterator[Way]:
        """Ways that leave out a call, or take a neighbour of the right record."""
        for index in self._writing:
            kept = tuple(plan for place, plan in enumerate(self._plan) if place != index)
            yield Way("left_out", f"without {_told(self._played.made[index])}", kept)
        misdirected = (way for index in self._writing for way in self._misdirected(index))
        for _, way in zip(range(_MISDIRECTED), misdirected, strict=False):
            yield way

    # -- the parts of other ways ----------------------------------------------------------------------------

    def _refused(self, rng: Random) -> PlannedCall | None:
        writing = [tool for tool in self._skeleton.tools if tool.effect == "update"]
        if not writing:
            return None
        tool = rng.choice(writing)
        _, arguments = wrong_arguments(tool, self._scenario.initial_state, self._skeleton.entities, rng)
        return PlannedCall(SolutionCall(name=tool.name, arguments=arguments))

    def _reordered(self) -> Iterator[Way]:
        """Each writing call before the one that it follows, as far as it needs no result of it."""
        tried = 0
        for one, other in zip(self._writing, self._writing[1:], strict=False):
            calls = list(self._plan)
            moved = calls.pop(other)
            needed = {binding.call for binding in moved.call.bindings.values()}
            if any(one <= number < other for number in needed):
                continue
            calls.insert(one, moved)
            first, second = self._played.made[other].name, self._played.made[one].name
            yield Way("variant", f"{first} before {second}", tuple(calls))
            tried += 1
            if tried == _REORDERED:
                return

    def _misdirected(self, index: int) -> Iterator[Way]:
        call = self._played.made[index]
        for name, value in call.arguments.items():
            for ids in self._fields.containers.values():
                if value not in ids:
                    continue
                neighbour = next((key for key in ids if key != value), None)
                if neighbour is not None:
                    wrong = call.model_copy(update={"arguments": {**call.arguments, name: neighbour}, "bindings": {}})
                    calls = list(self._plan)
                    calls[index] = PlannedCall(wrong, index)
                    yield Way(
                        "misdirected", f"{call.name} with {name}={neighbour!r} instead of {value!r}", tuple(calls)
                    )
                break


def _literal(call: SolutionCall) -> SolutionCall:
    return call.model_copy(update={"bindings": {}})


def _told(call: SolutionCall) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    text = f"{call.name}({arguments})"
    return text if len(text) <= 100 else f"{text[:99]}…"
