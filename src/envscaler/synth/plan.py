"""Executes the plan of a task and makes it a solution with literal arguments, or says why it does not run.

Whether the state it leaves is what the task asks for is for the checks to say.

Source: ours; the paper has no recorded solutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envscaler.env.oracles import reports_failure
from envscaler.program import argument_faults
from envscaler.sandbox import Program, Sandbox, Session
from envscaler.scenario import SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, State, get, replaced


@dataclass(frozen=True)
class Executed:
    """What carrying out a plan came to."""

    solution: tuple[SolutionCall, ...]
    """The calls that succeeded, with the arguments that they were made with."""
    final_state: State
    fault: str | None
    """Why the plan is no solution; None when every call succeeded and the state changed."""
    updates: int
    """Calls that changed the state."""


async def execute(
    plan: Sequence[SolutionCall], skeleton: EnvSkeleton, state: State, *, seed: int, clock: str, sandbox: Sandbox
) -> Executed:
    """Carry out a plan from `state`; it stops at the first call that does not succeed."""
    made: list[SolutionCall] = []
    results: list[JsonValue] = []
    updates = 0
    program = Program(skeleton.source, skeleton.class_name)
    async with sandbox.trial(program, state, seed=seed, clock=clock) as session:
        fault: str | None = None
        for index, call in enumerate(plan):
            arguments, fault = _bound(call, results)
            tool = skeleton.tool(call.name)
            if fault is None and tool is None:
                fault = "there is no such tool"
            if fault is None and tool is not None:
                fault = "; ".join(argument_faults(tool.parameters, arguments)) or None
            if fault is None:
                fault, changed = await _made(session, call.name, arguments, results)
                updates += changed
            if fault is not None:
                fault = f"call {index} of the plan, {call.name}, does not work: {fault}"
                break
            made.append(call.model_copy(update={"arguments": arguments}))
        final = await session.state()
    if fault is None and not updates:
        fault = "the plan changes nothing"
    return Executed(solution=tuple(made), final_state=final, fault=fault, updates=updates)


async def _made(
    session: Session, name: str, arguments: dict[str, JsonValue], results: list[JsonValue]
) -> tuple[str | None, bool]:
    outcome = await session.call(name, arguments)
    if outcome.fault is not None:
        return str(outcome.fault), False
    if reports_failure(outcome.result):
        return f"it reports {outcome.result.get('error')!r}", outcome.changed
    results.append(outcome.result)
    return None, outcome.changed


def _bound(call: SolutionCall, results: Sequence[JsonValue]) -> tuple[dict[str, JsonValue], str | None]:
    """The arguments with bindings resolved. Unlike a replay, a first run takes no value on trust."""
    arguments: JsonValue = call.arguments
    for pointer, binding in call.bindings.items():
        if not 0 <= binding.call < len(results):
            return call.arguments, f"{pointer} is bound to call {binding.call}, which is no earlier call"
        try:
            arguments = replaced(arguments, pointer, get(results[binding.call], binding.pointer))
        except (KeyError, ValueError):
            return call.arguments, (
                f"{pointer} is bound to {binding.pointer} in the result of call {binding.call}; "
                "one of the two is not there"
            )
    return dict(arguments), None
