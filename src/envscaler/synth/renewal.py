"""`renewed`: a scenario whose program was edited, for the program as it is now, if it still does what it did.

Writing another one in its place is `scenarios`' business, which of the two is done `redo`'s.
"""

from __future__ import annotations

from collections.abc import Sequence

from envscaler.errors import ProgramError
from envscaler.sandbox import CheckOutcome, Judge, Program, Sandbox
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import State
from envscaler.synth.difficulty import difficulty
from envscaler.synth.plan import Executed, execute


async def renewed(scenario: Scenario, skeleton: EnvSkeleton, sandbox: Sandbox, judge: Judge) -> Scenario | str:
    """The scenario, made to fit the program; or why it does not.

    Its solution is carried out again, and after it every check must hold, of which at least one must not hold before.
    Where no solution is known, as of imported scenarios, the program must start from its state, and its checks must
    run there and not all hold. Solutions that no longer work are left out; how often a model solved it is forgotten.

    Raises:
        SandboxError: if the machinery fails.
    """
    try:
        at_reset = await _at_reset(scenario, skeleton, sandbox)
    except ProgramError as fault:
        return f"the program does not start from its state: {fault}"
    before = await _checked(scenario, at_reset, at_reset, judge)
    broken = [outcome.error for outcome in before if outcome.error is not None]
    if scenario.solution is None and broken:
        return f"a check does not run on its state: {broken[0]}"
    if before and all(outcome.value for outcome in before):
        return "all its checks hold before anything is done"
    fit = scenario.model_copy(update={"env_digest": skeleton.digest, "calibration": None, "alternatives": ()})
    if scenario.solution is None:
        return fit
    executed = await _solves(scenario, scenario.solution, skeleton, at_reset, sandbox, judge)
    if isinstance(executed, str):
        return f"its solution no longer works: {executed}"
    others = [await _solves(scenario, other, skeleton, at_reset, sandbox, judge) for other in scenario.alternatives]
    fit = fit.model_copy(
        update={
            "solution": executed.solution,
            "alternatives": tuple(other.solution for other in others if isinstance(other, Executed)),
        }
    )
    measured = await difficulty(fit, executed.final_state, executed.updates, skeleton, sandbox)
    return fit.model_copy(update={"difficulty": measured})


async def _at_reset(scenario: Scenario, skeleton: EnvSkeleton, sandbox: Sandbox) -> State:
    program = Program(skeleton.source, skeleton.class_name)
    session = await sandbox.open(program, scenario.initial_state, seed=scenario.seed, clock=scenario.clock)
    try:
        return await session.state()
    finally:
        await session.close()


async def _solves(
    scenario: Scenario,
    solution: Sequence[SolutionCall],
    skeleton: EnvSkeleton,
    at_reset: State,
    sandbox: Sandbox,
    judge: Judge,
) -> Executed | str:
    """The calls as they were carried out; or why they are no solution."""
    executed = await execute(
        solution, skeleton, scenario.initial_state, seed=scenario.seed, clock=scenario.clock, sandbox=sandbox
    )
    if executed.fault is not None:
        return executed.fault
    outcomes = await _checked(scenario, at_reset, executed.final_state, judge)
    missed = [
        check.description for check, outcome in zip(scenario.checks, outcomes, strict=True) if outcome.value is not True
    ]
    return f"after it these checks do not hold: {'; '.join(missed)}" if missed else executed


async def _checked(scenario: Scenario, at_reset: State, final: State, judge: Judge) -> tuple[CheckOutcome, ...]:
    sources = [check.source for check in scenario.checks]
    return await judge.check(sources, initial_state=at_reset, final_state=final, clock=scenario.clock)
