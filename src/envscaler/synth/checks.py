"""The checklist of a task, and a check function for each item of it.

Whoever writes them sees the state and the task, never the plan. How functions are asked for and tried is
`check_functions`' business.

Source: paper 4, {c_k} = M(P_check ‖ task). That what holds of the initial state is told apart as a guard is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.sandbox import Judge
from envscaler.scenario import Check
from envscaler.state import State
from envscaler.synth.asking import Asking
from envscaler.synth.check_functions import CheckFunctions

MAX_CHECKS = 40
"""A longer checklist is a model that repeats itself."""


@dataclass(frozen=True)
class WrittenChecks:
    """The checks of one scenario."""

    checks: tuple[Check, ...]
    dropped: tuple[str, ...]
    """Checklist entries without a usable check function, with the reason."""


async def write_checks(
    inputs: t.WriteChecklistInputs, *, other_state: State | None, per_call: int, asking: Asking, judge: Judge
) -> WrittenChecks:
    """Write checklist and check functions.

    Args:
        other_state: a second state on which each function has to run as well; what it says there is not judged.
        per_call: functions asked for at once.

    Raises:
        ReplyError: if there is no usable checklist.
    """
    listed = await asking(roles.WRITE_CHECKLIST, inputs, doubt=_checklist_doubt, sample=inputs.index)
    questions = [
        t.CheckQuestion(item=item, position=position) for position, item in enumerate(_distinct(listed.checklist))
    ]
    functions = CheckFunctions(inputs, other_state=other_state, per_call=per_call, asking=asking, judge=judge)
    made = await functions.write(questions, sample=inputs.index)
    return WrittenChecks(
        checks=tuple(check for check in made if isinstance(check, Check)),
        dropped=tuple(reason for reason in made if isinstance(reason, str)),
    )


def _checklist_doubt(reply: t.WriteChecklistReply) -> str | None:
    if not _distinct(reply.checklist):
        return "the checklist has no entry"
    if len(reply.checklist) > MAX_CHECKS:
        return f"the checklist has {len(reply.checklist)} entries; give at most {MAX_CHECKS}"
    return None


def _distinct(entries: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(entry.split()) for entry in entries if entry.strip()))
