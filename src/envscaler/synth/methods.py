"""`MethodWriter`: the methods of one environment, several a call.

What a reply brings that can be used stays; only the rest is asked for again, with the fault named, and one at a time
where the model is not up to several. Whether a method works is seen when the program is tried (`programming`).

Source: paper 3.2, program modelling. Several a call are ours.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import pairwise

from envscaler.engine import bounded_map
from envscaler.errors import ProgramError, ReplyError
from envscaler.program.functions import Functions
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.skeleton import Rule, ToolSpec
from envscaler.synth.asking import Asking
from envscaler.synth.staged import methods as staged

_AT_ONCE = 16


class MethodWriter:
    """Writes methods for one state class."""

    def __init__(
        self, known: t.WriteClassInputs, *, class_source: str, class_name: str, per_call: int, asking: Asking
    ) -> None:
        """
        Args:
            per_call: methods asked for at once; 1: each in a call of its own, as in the paper.
        """
        self._known = known
        self._class = {"class_source": class_source, "class_name": class_name}
        self._per_call = per_call if asking.scaffold == "whole" else 1
        self._asking = asking
        self._several = self._per_call > 1

    @property
    def is_up_to_several(self) -> bool:
        """Whether half of what was asked for at once could be used each time."""
        return self._several or self._per_call == 1

    async def write(self, questions: Sequence[t.MethodQuestion]) -> tuple[dict[str, str], dict[str, str]]:
        """The sources by tool, and for each tool without one the reason."""
        written: dict[str, str] = {}
        first = {question.tool.name: question for question in questions}
        # Rules are shown with updates only, so that calls about queries are shorter.
        left = sorted(questions, key=lambda question: question.tool.effect == "update")
        for _ in range(self._asking.attempts):
            if not self._several or len(left) < 2:
                break
            asked, left = left, []
            async for sources, rest in bounded_map(self._ask_several, _parts(asked, self._per_call), limit=_AT_ONCE):
                written |= sources
                left += rest
            # Decided when all are back: it must not depend on which comes first.
            self._several = len(left) * 2 <= len(asked)
        reasons: dict[str, str] = {}
        alone = [first[question.tool.name] for question in left]
        async for name, source, why in bounded_map(self._ask_one, alone, limit=_AT_ONCE):
            if source is not None:
                written[name] = source
            else:
                reasons[name] = why
        return written, reasons

    async def with_fewer_rules(self, tool: ToolSpec, rules: Sequence[Rule]) -> str | None:
        """One method written anew from these rules only; None when no reply can be used.

        The embedded model is not asked: it would write the same.
        """
        if self._asking.is_offline(roles.WRITE_METHOD):
            return None
        known = self._known.model_copy(update={"rules": tuple(rules)})
        _, source, _ = await self._ask_one(t.MethodQuestion(tool=tool), known=known, sample=1, attempts=1)
        return source

    async def _ask_several(self, asked: Sequence[t.MethodQuestion]) -> tuple[dict[str, str], list[t.MethodQuestion]]:
        inputs = t.WriteMethodsInputs(**dict(self._known), **self._class, questions=tuple(asked))
        try:
            reply = await self._asking(roles.WRITE_METHODS, inputs, attempts=1)
        except ReplyError:
            return {}, list(asked)
        functions = Functions(reply.blocks, of_classes=True)
        written: dict[str, str] = {}
        left: list[t.MethodQuestion] = []
        for question in asked:
            name = question.tool.name
            try:
                written[name] = functions.standing(name)
            except ProgramError as fault:
                said = str(fault) if question.fault is None else f"{fault}; and of the one before: {question.fault}"
                left.append(question.model_copy(update={"fault": said}))
        return written, left

    async def _ask_one(
        self,
        question: t.MethodQuestion,
        known: t.WriteClassInputs | None = None,
        sample: int = 0,
        attempts: int | None = None,
    ) -> tuple[str, str | None, str]:
        name = question.tool.name
        inputs = t.WriteMethodInputs(**dict(known or self._known), **self._class, **dict(question))
        try:
            return name, await asked_method(self._asking, inputs, sample=sample, attempts=attempts), ""
        except ReplyError as fault:
            return name, None, str(fault)


async def asked_method(
    asking: Asking, inputs: t.WriteMethodInputs, *, sample: int = 0, attempts: int | None = None
) -> str:
    """The source of one method, asked for as the scaffold asks.

    Raises:
        ReplyError: if no reply can be used.
    """
    tool = inputs.tool

    def doubt(reply: t.CodeReply) -> str | None:
        return method_doubt(reply, tool.name)

    if asking.scaffold == "whole":
        return (await asking(roles.WRITE_METHOD, inputs, doubt=doubt, sample=sample, attempts=attempts)).source
    asked = staged.tool_inputs(inputs)
    reply = await asking(roles.WRITE_TOOL, asked, doubt=doubt, sample=sample, attempts=attempts)
    return staged.framed(reply.source, tool, inputs.entities, inputs.rules)


def method_doubt(reply: t.CodeReply, name: str) -> str | None:
    """What is wrong with code that is to define the method of that name, or None; whether it works is seen later."""
    defined = [
        node.name
        for node in ast.walk(ast.parse(reply.source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    if name in defined:
        return None
    return f"it defines no method {name}, only {', '.join(defined)}" if defined else f"it defines no method {name}"


def _parts(questions: Sequence[t.MethodQuestion], most: int) -> list[Sequence[t.MethodQuestion]]:
    """The questions in as few parts as can be, about as long as each other."""
    number = -(-len(questions) // most)
    return [
        questions[start:end] for start, end in pairwise(len(questions) * part // number for part in range(number + 1))
    ]
