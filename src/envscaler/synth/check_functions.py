"""`CheckFunctions`: check functions for questions about one scenario, several a call, each run before it is accepted.

What a reply brings that can be used stays; only the rest is asked for again, with the fault named, and one at a time
where a model is not up to several.

Source: paper 4, f_ck = M(P_func ‖ S_init ‖ task ‖ c_k). Several a call, and that each is run on the initial state, are
ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from envscaler.engine import bounded_map
from envscaler.errors import ProgramError, ReplyError
from envscaler.program.functions import Functions
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.sandbox import CheckOutcome, Judge
from envscaler.scenario import Check
from envscaler.state import State
from envscaler.synth.asking import Asking

_FUNCTION = "check_func"
_AT_ONCE = 8


class CheckFunctions:
    """Writes the check functions of one scenario."""

    def __init__(
        self,
        inputs: t.WriteChecklistInputs,
        *,
        other_state: State | None,
        per_call: int,
        asking: Asking,
        judge: Judge,
    ) -> None:
        """
        Args:
            inputs: what the checklist was written from.
            other_state: a second state on which each function has to run as well; what it says there is not judged.
            per_call: functions asked for at once; 1: each in a call of its own, as in the paper.
        """
        self._inputs = inputs
        self._other_state = other_state
        self._per_call = per_call
        self._asking = asking
        self._judge = judge

    async def write(self, questions: Sequence[t.CheckQuestion], *, sample: int) -> list[Check | str]:
        """For each question a check; or why there is none."""

        async def several(part: Sequence[t.CheckQuestion]) -> list[Check | str]:
            return await _Batch(self, part, sample).write()

        parts = _parts(questions, self._per_call)
        return [made async for batch in bounded_map(several, parts, limit=_AT_ONCE) for made in batch]

    async def ask_several(self, questions: Sequence[t.CheckQuestion], sample: int) -> Functions | str:
        """What one reply to several questions holds; or why it cannot be used."""
        inputs = t.WriteChecksInputs(**dict(self._inputs), questions=tuple(questions))
        try:
            reply = await self._asking(roles.WRITE_CHECKS, inputs, sample=sample, attempts=1)
        except ReplyError as fault:
            return str(fault)
        return Functions(reply.blocks)

    async def ask_one(self, question: t.CheckQuestion, sample: int, attempts: int) -> Check | str:
        """The check that answers a question, asked for until it runs; or why there is none."""
        kept: list[Check] = []

        async def doubt(reply: t.CodeReply) -> str | None:
            if _FUNCTION not in reply.source:
                return f"it defines no function {_FUNCTION}(final_state)"
            made = await self.tried(question, reply.source)
            if isinstance(made, str):
                return made
            kept.append(made)
            return None

        inputs = t.WriteCheckInputs(**dict(self._inputs), **dict(question))
        try:
            await self._asking(roles.WRITE_CHECK, inputs, doubt=doubt, sample=sample, attempts=attempts)
        except ReplyError as fault:
            return f"check {question.item!r}: {fault}"
        return kept[-1]

    async def tried(self, question: t.CheckQuestion, source: str) -> Check | str:
        """The check, if its function runs on both states; else what is wrong with it."""
        at_reset = await self._run(source, self._inputs.state)
        fault = _fault(at_reset, "the initial state")
        if fault is None and self._other_state is not None:
            fault = _fault(await self._run(source, self._other_state), "another state")
        if fault is not None:
            return fault
        return Check(description=question.item, source=source, kind="guard" if at_reset.value else "goal")

    @property
    def attempts(self) -> int:
        """How often one function is written at most."""
        return self._asking.attempts

    async def _run(self, source: str, final: State) -> CheckOutcome:
        state, clock = self._inputs.state, self._inputs.clock
        return (await self._judge.check([source], initial_state=state, final_state=final, clock=clock))[0]


class _Batch:
    """Some questions on their way to their checks."""

    def __init__(self, functions: CheckFunctions, questions: Sequence[t.CheckQuestion], sample: int) -> None:
        self._functions = functions
        self._first = {question.position: question for question in questions}
        self._sample = sample
        self._made: dict[int, Check | str] = {}
        self._written = dict.fromkeys(self._first, 0)
        """How often a function for a question was there to be tried."""

    async def write(self) -> list[Check | str]:
        left = list(self._first.values())
        for _ in range(self._functions.attempts):
            if len(left) < 2:
                break
            asked, left = left, await self._one_call(left)
            if len(left) * 2 > len(asked):
                break  # the model is not up to several at once

        async def alone(question: t.CheckQuestion) -> Check | str:
            written = self._written[question.position]
            if written == self._functions.attempts:
                return f"check {question.item!r}: {question.fault} (after {written} attempts)"
            # That a reply to several questions lacked a function is no fault to name to a writer of one.
            asked = question if written else self._first[question.position]
            return await self._functions.ask_one(asked, self._sample, self._functions.attempts - written)

        rest = [made async for made in bounded_map(alone, left, limit=_AT_ONCE)]
        self._made.update(zip((question.position for question in left), rest, strict=True))
        return [self._made[position] for position in self._first]

    async def _one_call(self, asked: Sequence[t.CheckQuestion]) -> list[t.CheckQuestion]:
        """Ask several at once; the questions that are left, with what was wrong with their functions."""
        reply = await self._functions.ask_several(asked, self._sample)
        left: list[t.CheckQuestion] = []
        for question in asked:
            if isinstance(reply, str):
                left.append(question)
                continue
            try:
                source = reply.alone(question.function, _FUNCTION)
            except ProgramError as fault:
                left.append(self._with_fault(question, str(fault)))
                continue
            self._written[question.position] += 1
            made = await self._functions.tried(question, source)
            if isinstance(made, Check):
                self._made[question.position] = made
            else:
                left.append(self._with_fault(question, made).model_copy(update={"previous": source}))
        return left

    def _with_fault(self, question: t.CheckQuestion, fault: str) -> t.CheckQuestion:
        complaint = self._first[question.position].fault
        # What a function was sent back for in the first place still has to be mended.
        said = fault if complaint is None else f"{fault}; and of the one before: {complaint}"
        return question.model_copy(update={"fault": said})


def _parts(questions: Sequence[t.CheckQuestion], most: int) -> list[Sequence[t.CheckQuestion]]:
    """The questions in as few parts as can be, about as long as each other."""
    number = -(-len(questions) // most)
    bounds = [len(questions) * part // number for part in range(number + 1)] if number else []
    return [questions[start:end] for start, end in pairwise(bounds)]


def _fault(outcome: CheckOutcome, where: str) -> str | None:
    if outcome.error is not None or outcome.value is None:
        return f"run on {where}, it gave no boolean: {outcome.error}"
    return f"run on {where}, it changed the state that it was given; it may only read" if outcome.mutated else None
