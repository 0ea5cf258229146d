"""`ReplyReader`: what replies come to, slips included. How a model is written to is not known here."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from envscaler.agents.dialects.bare import bare_calls
from envscaler.agents.dialects.dialect import DialectName, Kept, Reading
from envscaler.agents.dialects.foreign import foreign_calls
from envscaler.agents.dialects.made_calls import made_call
from envscaler.agents.dialects.shape import Attempt, Found, Keys, Tools
from envscaler.agents.dialects.slips import LIKELY, slip
from envscaler.agents.dialects.thinking import split_thinking
from envscaler.llm.chat import Completion, FinishReason
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import Slip


class ReplyReader(ABC):
    """Finds the calls of a reply, in the dialect's form or in that of others."""

    name: ClassVar[DialectName]
    form: ClassVar[str]
    keys: ClassVar[Keys] = Keys()
    """Under what a call without its wrapper is expected to have name and arguments."""
    stops: ClassVar[tuple[str, ...]] = ()
    inventions: ClassVar[re.Pattern[str]] = re.compile(
        r"<\|im_start\|>|<\|start_header_id\|>|<tool_response>|\[TOOL_RESULTS\]"
    )
    """Where a reply goes on with what only others can say."""
    default_reasoning: ClassVar[Kept] = "none"

    def __init__(self, *, parallel: bool = True, reasoning: Kept | None = None) -> None:
        """
        Args:
            parallel: whether the model is told that it may make several calls at once.
            reasoning: which reasoning it is shown again; None: what its family is used to.
        """
        self.parallel = parallel
        self.reasoning: Kept = reasoning if reasoning is not None else self.default_reasoning

    def shows(self, index: int, told: int) -> bool:
        """Whether the reasoning of a message is shown, by its place and that of the last user message."""
        return self.reasoning == "all" or (self.reasoning == "turn" and index > told)

    def read(self, completion: Completion, tools: Sequence[ToolSpec]) -> Reading:
        message = completion.message
        if message.tool_calls and completion.finish_reason != "length":
            # Some servers read calls out of text though no tools were sent.
            by_name = {tool.name: tool for tool in tools}
            attempts = [made_call(call, by_name) for call in message.tool_calls]
            found = [slip("native_call", message.tool_calls[0].name)]
            return assembled(message.content, message.reasoning, attempts, by_name, found)
        if completion.text is not None:
            return self.parse(completion.text, tools, completion.finish_reason)
        reading = self.parse(message.content, tools, completion.finish_reason)
        thoughts = [part for part in (message.reasoning, reading.message.reasoning) if part]
        joined = reading.message.model_copy(update={"reasoning": "\n".join(thoughts) or None})
        return Reading(joined, reading.slips, reading.fault)

    def parse(self, text: str, tools: Sequence[ToolSpec], finish: FinishReason = "stop") -> Reading:
        """What a reply's text comes to.

        Args:
            finish: why it ended; one that was cut off is never carried out.
        """
        by_name = {tool.name: tool for tool in tools}
        thought = split_thinking(text, lambda whole, place: self._is_inside(whole, place, by_name))
        slips: list[Slip] = []
        if thought.reasoning and any(stretch.attempts for stretch in self._all_calls(thought.reasoning, by_name)):
            slips.append(slip("drafted_call", repaired=False))
        if finish == "length":
            said = AssistantMessage(content=thought.rest.strip(), reasoning=thought.reasoning)
            return Reading(said, (*slips, slip("cut_reply", repaired=False)), "cut_reply")
        if not thought.rest.strip():
            kind = "empty_reply" if thought.closed else "unclosed_thinking"
            return faulty(kind, "", thought.reasoning, slips)
        return self._read_body(thought.rest, thought.reasoning, by_name, slips)

    @abstractmethod
    def find(self, text: str, tools: Tools) -> list[Found]:
        """The calls that have this dialect's form, more or less."""

    def strays(self, text: str, tools: Tools) -> list[Found]:
        """The calls of a text in which none has this dialect's form."""
        return foreign_calls(text, tools, self.name) or bare_calls(text, tools, self.keys)

    def answered(self, text: str, reasoning: str | None, slips: list[Slip]) -> Reading:
        """A reply without calls."""
        return Reading(AssistantMessage(content=text.strip(), reasoning=reasoning), tuple(slips))

    def said_before(self, text: str, reasoning: str | None, slips: list[Slip]) -> tuple[str, str | None]:
        """Content and reasoning of a reply with calls, by what stands before them."""
        return text.strip(), reasoning

    def after_calls(self, rest: str) -> str | None:
        """The kind of slip that text after calls is."""
        return "text_after_call"

    def _all_calls(self, text: str, tools: Tools) -> list[Found]:
        return self.find(text, tools) or self.strays(text, tools)

    def _is_inside(self, text: str, place: int, tools: Tools) -> bool:
        return any(stretch.start < place < stretch.end for stretch in self._all_calls(text, tools))

    def _read_body(self, body: str, reasoning: str | None, tools: Tools, slips: list[Slip]) -> Reading:
        found, rest, invented = self._kept(body, self._all_calls(body, tools))
        if invented:
            slips.append(slip("invented_turn", invented))
        if not found:
            answer, leaked = without_tokens(rest)
            if leaked and not invented:
                slips.append(slip("leaked_token", leaked))
            return self.answered(answer, reasoning, slips) if answer else faulty("empty_reply", "", reasoning, slips)
        content, reasoning = self.said_before(body[: found[0].start], reasoning, slips)
        after, leaked = without_tokens(rest)
        if leaked and not invented:
            slips.append(slip("leaked_token", leaked))
        attempts = [attempt for stretch in found for attempt in stretch.attempts]
        told = {kind for attempt in attempts for kind in attempt.slips}
        if after and "call_in_prose" not in told and (kind := self.after_calls(after)) is not None:
            if kind in LIKELY:
                attempts[-1].slips.append(kind)
            else:
                slips.append(slip(kind, after))
        return assembled(content, reasoning, attempts, tools, slips)

    def _kept(self, body: str, found: list[Found]) -> tuple[list[Found], str, str]:
        """The calls before anything invented, the text between and after them, and what was invented."""
        kept: list[Found] = []
        between: list[str] = []
        position = 0
        for stretch in found:
            gap = body[position : stretch.start]
            if invention := self.inventions.search(gap):
                before = gap[: invention.start()]
                return kept, "".join([*between, before]), body[position + invention.start() :]
            if kept and gap.strip(" \t\n,;"):
                between.append(gap)
            kept.append(stretch)
            position = stretch.end
        rest = body[position:]
        if invention := self.inventions.search(rest):
            return kept, "".join([*between, rest[: invention.start()]]), rest[invention.start() :]
        return kept, "".join([*between, rest]), ""


_TOKENS = re.compile(
    r"(?:\s*(?:<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end)\|>|</s>|<｜end▁of▁sentence｜>))+\s*\Z"
)


def without_tokens(text: str) -> tuple[str, str]:
    """The text without control tokens at its end, and those."""
    tokens = _TOKENS.search(text)
    return (text[: tokens.start()].strip(), tokens.group()) if tokens else (text.strip(), "")


def faulty(kind: str, text: str, reasoning: str | None, slips: Sequence[Slip]) -> Reading:
    """The reading of a reply in which there is nothing to carry out or to say."""
    message = AssistantMessage(reasoning=reasoning, tool_calls=(ToolCall(name="", malformed=text.strip()),))
    return Reading(message, (*slips, slip(kind, text, repaired=False)), kind)


def assembled(
    content: str, reasoning: str | None, attempts: Sequence[Attempt], tools: Tools, slips: Sequence[Slip]
) -> Reading:
    """The reading of a reply with calls. What is only likely meant is carried out where it changes nothing."""
    calls: list[ToolCall] = []
    all_slips = list(slips)
    fault: str | None = None
    for attempt in attempts:
        broken = attempt.fault
        doubtful = next((kind for kind in attempt.slips if kind in LIKELY), None)
        tool = tools.get(attempt.name)
        if broken is None and doubtful is not None and (tool is None or tool.effect != "query"):
            broken = doubtful
        if broken is None:
            calls.append(ToolCall(name=attempt.name, arguments=attempt.arguments))
            all_slips += [slip(kind, attempt.text) for kind in attempt.slips]
        else:
            calls.append(ToolCall(name=attempt.name, malformed=attempt.text))
            all_slips += [slip(kind, attempt.text) for kind in attempt.slips if kind not in LIKELY and kind != broken]
            all_slips.append(slip(broken, attempt.text, repaired=False))
            fault = fault or broken
    message = AssistantMessage(content=content, reasoning=reasoning, tool_calls=tuple(calls))
    unique = {(found.kind, found.repaired): found for found in reversed(all_slips)}
    return Reading(message, tuple(reversed(unique.values())), fault)
