"""The checklist of a task and its check functions, each run before it is accepted.

Whoever writes them sees the state and the task, never the plan.

Source: paper 4, {c_k} = M(P_check ‖ task) and f_ck = M(P_func ‖ S_init ‖ task ‖ c_k). That each function is run on
the initial state, and what holds there is told apart as a guard, is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envscaler.engine import bounded_map
from envscaler.errors import ReplyError
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.sandbox import CheckOutcome, Judge
from envscaler.scenario import Check
from envscaler.state import State
from envscaler.synth.asking import Asking

MAX_CHECKS = 40
"""A longer checklist is a model that repeats itself."""
_AT_ONCE = 8


@dataclass(frozen=True)
class WrittenChecks:
    """The checks of one scenario."""

    checks: tuple[Check, ...]
    dropped: tuple[str, ...]
    """Checklist entries without a usable check function, with the reason."""


async def write_checks(
    known: t.EnvironmentInputs,
    *,
    state: State,
    other_state: State | None,
    clock: str,
    task: str,
    index: int,
    seed: int,
    asking: Asking,
    judge: Judge,
) -> WrittenChecks:
    """Write checklist and check functions.

    Args:
        other_state: a second state on which each function has to run as well; what it says there is not judged.

    Raises:
        ReplyError: if there is no usable checklist.
    """
    inputs = t.WriteChecklistInputs(**dict(known), state=state, clock=clock, task=task, index=index, seed=seed)
    listed = await asking(roles.WRITE_CHECKLIST, inputs, doubt=_checklist_doubt, sample=index)

    async def write(numbered: tuple[int, str]) -> Check | str:
        position, description = numbered
        asked = t.WriteCheckInputs(**dict(inputs), item=description, position=position)
        return await write_check(asked, other_state=other_state, asking=asking, judge=judge, sample=index)

    made = [outcome async for outcome in bounded_map(write, enumerate(_distinct(listed.checklist)), limit=_AT_ONCE)]
    return WrittenChecks(
        checks=tuple(check for check in made if isinstance(check, Check)),
        dropped=tuple(reason for reason in made if isinstance(reason, str)),
    )


async def write_check(
    inputs: t.WriteCheckInputs, *, other_state: State | None, asking: Asking, judge: Judge, sample: int
) -> Check | str:
    """One check function, written until it runs; or why there is none."""
    state, clock = inputs.state, inputs.clock
    held: list[bool] = []

    async def doubt(reply: t.CodeReply) -> str | None:
        if "check_func" not in reply.source:
            return "it defines no function check_func(final_state)"
        at_reset = await _run(reply.source, state, state, clock, judge)
        fault = _fault(at_reset, "the initial state")
        if fault is None and other_state is not None:
            fault = _fault(await _run(reply.source, state, other_state, clock, judge), "another state")
        if fault is None:
            held.append(bool(at_reset.value))
        return fault

    try:
        written = await asking(roles.WRITE_CHECK, inputs, doubt=doubt, sample=sample)
    except ReplyError as fault:
        return f"check {inputs.item!r}: {fault}"
    return Check(description=inputs.item, source=written.source, kind="guard" if held[-1] else "goal")


async def _run(source: str, initial: State, final: State, clock: str, judge: Judge) -> CheckOutcome:
    return (await judge.check([source], initial_state=initial, final_state=final, clock=clock))[0]


def _fault(outcome: CheckOutcome, where: str) -> str | None:
    if outcome.error is not None or outcome.value is None:
        return f"run on {where}, it gave no boolean: {outcome.error}"
    return f"run on {where}, it changed the state that it was given; it may only read" if outcome.mutated else None


def _checklist_doubt(reply: t.WriteChecklistReply) -> str | None:
    if not _distinct(reply.checklist):
        return "the checklist has no entry"
    if len(reply.checklist) > MAX_CHECKS:
        return f"the checklist has {len(reply.checklist)} entries; give at most {MAX_CHECKS}"
    return None


def _distinct(entries: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(entry.split()) for entry in entries if entry.strip()))
