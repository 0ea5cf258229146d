"""`Bench`: plays calls and asks checks in the sandbox, blocking; no more than what planting a fault needs to know.

What is planted, and where, is the business of the other modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from envscaler.sandbox import BlockingSandbox, CheckOutcome, Outcome, Program, Sandbox
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, State


@dataclass(frozen=True)
class Played:
    """What calls did, one after the other, from an initial state."""

    states: tuple[State, ...]
    """The state before the first call and after each."""
    outcomes: tuple[Outcome, ...]

    @property
    def initial(self) -> State:
        """The state right after reset."""
        return self.states[0]

    @property
    def final(self) -> State:
        """The state after the last call."""
        return self.states[-1]

    @property
    def results(self) -> list[JsonValue]:
        """What each call returned."""
        return [outcome.result for outcome in self.outcomes]

    @property
    def failed(self) -> bool:
        """Whether a call had a fault or returned a failure."""
        return not all(succeeded(outcome) for outcome in self.outcomes)


def succeeded(outcome: Outcome) -> bool:
    """Whether a call was carried out."""
    refused = isinstance(outcome.result, dict) and outcome.result.get("success") is False
    return outcome.fault is None and not refused


KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


def remembered(find: Callable[[KeyT, Bench], ValueT]) -> Callable[[KeyT, Bench], ValueT]:
    """Keeps what was found for a key in this process, whichever bench it was found with."""
    found: dict[KeyT, ValueT] = {}

    def recalled(key: KeyT, bench: Bench) -> ValueT:
        if key not in found:
            found[key] = find(key, bench)
        return found[key]

    return recalled


class Bench:
    """A sandbox with one process that judges; a context manager."""

    def __init__(self) -> None:
        self._box = BlockingSandbox()

    def __enter__(self) -> Self:
        self._box.__enter__()

        async def opened(sandbox: Sandbox) -> Sandbox:
            return sandbox

        self._judge = self._box.run(opened).judge()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._box.__exit__(kind, error, trace)

    @property
    def box(self) -> BlockingSandbox:
        """The sandbox itself."""
        return self._box

    def play(
        self,
        skeleton: EnvSkeleton,
        state: State,
        calls: Sequence[SolutionCall],
        *,
        seed: int = 0,
        clock: str = "2025-01-06T09:00:00",
        bound: bool = True,
    ) -> Played:
        """Make calls from a state.

        Args:
            bound: resolve bindings first; else the literal values are used.
        """

        async def played(sandbox: Sandbox) -> Played:
            program = Program(skeleton.source, skeleton.class_name)
            async with sandbox.trial(program, state, seed=seed, clock=clock) as session:
                states, outcomes = [await session.state()], list[Outcome]()
                for call in calls:
                    results = [outcome.result for outcome in outcomes]
                    arguments = call.resolved(results) if bound else call.arguments
                    outcomes.append(await session.call(call.name, arguments))
                    states.append(await session.state() if outcomes[-1].changed else states[-1])
                return Played(tuple(states), tuple(outcomes))

        return self._box.run(played)

    def solve(self, skeleton: EnvSkeleton, scenario: Scenario, calls: Sequence[SolutionCall] | None = None) -> Played:
        """Play the scenario's solution, or other calls in its place."""
        chosen = calls if calls is not None else scenario.solution or ()
        return self.play(skeleton, scenario.initial_state, chosen, seed=scenario.seed, clock=scenario.clock)

    def judged(
        self, scenario: Scenario, final: State, *, initial: State | None = None, clock: str | None = None
    ) -> tuple[CheckOutcome, ...]:
        """What each check of the scenario says of a final state."""
        sources = [check.source for check in scenario.checks]
        return self.asked(sources, initial or scenario.initial_state, final, clock or scenario.clock)

    def asked(self, sources: Sequence[str], initial: State, final: State, clock: str) -> tuple[CheckOutcome, ...]:
        """What check functions say of a final state."""

        async def checked(_: Sandbox) -> tuple[CheckOutcome, ...]:
            return await self._judge.check(sources, initial_state=initial, final_state=final, clock=clock)

        return self._box.run(checked)

    def evaluated(self, expression: str, states: Sequence[State]) -> list[bool | None]:
        """What an expression over `state` says of each state."""

        async def told(_: Sandbox) -> list[bool | None]:
            return [(await self._judge.evaluate([expression], state))[0].value for state in states]

        return self._box.run(told)

    def accepts(self, scenario: Scenario, final: State) -> bool:
        """Whether all checks of the scenario hold in a final state."""
        return all(outcome.value is True for outcome in self.judged(scenario, final))

    def solved(self, skeleton: EnvSkeleton, scenario: Scenario) -> bool:
        """Whether the recorded solution runs and satisfies all checks."""
        played = self.solve(skeleton, scenario)
        return not played.failed and self.accepts(scenario, played.final)
