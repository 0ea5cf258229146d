"""`play`: carries out calls from a scenario's initial state and tells what each did and which state they left.

Which calls are worth playing, and what their final states are worth, is the business of the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envscaler.env.oracles import reports_failure
from envscaler.probe import PlannedCall
from envscaler.sandbox import Program, Sandbox
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, State


@dataclass(frozen=True)
class Played:
    """What a sequence of calls did."""

    reset: State
    """The state that the program was in before them: every attribute of its instance."""
    final: State
    clock: str
    """The time at which the last call was over."""
    results: tuple[JsonValue, ...]
    faults: tuple[str | None, ...]
    """Of each call why it did not succeed: an exception, or a failure that it reports."""
    changed: tuple[bool, ...]
    made: tuple[SolutionCall, ...]
    """The calls with the arguments that they were made with."""

    @property
    def succeeded(self) -> bool:
        """Whether every call did what it was asked for."""
        return not any(self.faults)


async def play(
    skeleton: EnvSkeleton,
    scenario: Scenario,
    calls: Sequence[PlannedCall],
    sandbox: Sandbox,
    *,
    seed: int | None = None,
    clock: str | None = None,
) -> Played:
    """Carry out calls, whatever becomes of each.

    Args:
        seed, clock: others than the scenario's.

    Raises:
        ProgramError: if the program cannot be built from the state.
        SandboxError: if the machinery fails.
    """
    program = Program(skeleton.source, skeleton.class_name)
    bound: dict[int, JsonValue] = {}
    results: list[JsonValue] = []
    faults: list[str | None] = []
    changed: list[bool] = []
    made: list[SolutionCall] = []
    async with sandbox.trial(
        program,
        scenario.initial_state,
        seed=scenario.seed if seed is None else seed,
        clock=scenario.clock if clock is None else clock,
    ) as session:
        reset = await session.state()
        for plan in calls:
            arguments = plan.call.resolved(bound)
            outcome = await session.call(plan.call.name, arguments)
            fault = str(outcome.fault) if outcome.fault is not None else None
            if fault is None and reports_failure(outcome.result):
                fault = f"it reports {outcome.result.get('error')!r}"
            elif fault is None and plan.number is not None:
                bound[plan.number] = outcome.result
            results.append(outcome.result)
            faults.append(fault)
            changed.append(outcome.changed)
            made.append(plan.call.model_copy(update={"arguments": arguments}))
        moment = await session.snapshot()
    return Played(reset, moment.state, moment.clock, tuple(results), tuple(faults), tuple(changed), tuple(made))
