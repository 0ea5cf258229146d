"""The dialect of ReAct: lines `Thought:`, `Action:`, `Action Input:`, and `Final Answer:` at the end.

Source: Yao et al., arXiv 2210.03629; the action input is JSON, as agent frameworks write it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from envscaler.agents.dialects.dialect import DialectName, Kept, Reading
from envscaler.agents.dialects.lenient_json import json_text
from envscaler.agents.dialects.react_form import KEYS, LINE, is_plain, key_of, react_calls
from envscaler.agents.dialects.reply_reader import faulty
from envscaler.agents.dialects.shape import Found, Tools
from envscaler.agents.dialects.slips import slip
from envscaler.agents.dialects.text_dialect import TextDialect, one_by_one
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage
from envscaler.trajectory import Slip

_THOUGHT = re.compile(r"^[ \t]*(?:\*\*)?Thought[ \t]*\d*[ \t]*(?:\*\*)?[ \t]*[:：](?:\*\*)?[ \t]*", re.M | re.I)


class ReactDialect(TextDialect):
    """Thoughts are the reasoning of a step, and are shown again: the form rests on them."""

    name: ClassVar[DialectName] = "react"
    form = "Write a line `Action: tool` and a line `Action Input: {…}`, or a line `Final Answer: …`."
    keys = KEYS
    default_reasoning: ClassVar[Kept] = "all"
    stops = ("\nObservation:",)
    inventions = re.compile(
        rf"{TextDialect.inventions.pattern}|^[ \t]*[*_]*Observation[ \t]*\d*[ \t]*[*_]*[ \t]*[:：]", re.M | re.I
    )

    def text_of(self, message: AssistantMessage, tools: Tools) -> str:
        thought = f"Thought: {message.reasoning}\n" if message.reasoning else ""
        if not message.tool_calls:
            return f"{thought}Final Answer: {message.content}" if message.content else thought.rstrip()
        said = f"{message.content}\n" if message.content else ""
        return thought + said + self.calls_text(message.tool_calls, tools)

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return one_by_one(calls, lambda call: f"Action: {call.name}\nAction Input: {json_text(call.arguments)}")

    def results_text(self, results: Sequence[ToolMessage]) -> str:
        return "\n".join(f"Observation: {result.content}" for result in results)

    def find(self, text: str, tools: Tools) -> list[Found]:
        return react_calls(text, tools)

    def said_before(self, text: str, reasoning: str | None, slips: list[Slip]) -> tuple[str, str | None]:
        thoughts = _THOUGHT.sub("", text).strip()
        return "", "\n".join(part for part in (reasoning, thoughts) if part) or None

    def after_calls(self, rest: str) -> str | None:
        answers = any(key_of(line) == "final answer" for line in LINE.finditer(rest))
        return "call_and_answer" if answers else "text_after_call"

    def answered(self, text: str, reasoning: str | None, slips: list[Slip]) -> Reading:
        lines = list(LINE.finditer(text))
        final = next((line for line in lines if key_of(line) == "final answer"), None)
        if final is None:
            if lines:
                return faulty("no_action", text, reasoning, slips)
            slips.append(slip("missing_answer_mark", text))
            return Reading(AssistantMessage(content=text.strip(), reasoning=reasoning), tuple(slips))
        before = text[: final.start()]
        if any(key_of(line) == "action" for line in lines if line.start() < final.start()) or not is_plain(final):
            slips.append(slip("other_form", text))
        _, thoughts = self.said_before(_without_actions(before), reasoning, slips)
        answer = text[final.end() :].strip()
        rest = [key_of(line) for line in LINE.finditer(answer)]
        if "action input" in rest:
            return faulty("call_and_answer", text, thoughts, slips)
        if not answer:
            return faulty("empty_reply", text, thoughts, slips)
        return Reading(AssistantMessage(content=answer, reasoning=thoughts), tuple(slips))


def _without_actions(text: str) -> str:
    """The text without the lines of an action that is none (`Action: None`)."""
    return re.sub(r"^[ \t]*[*_]*Action(?:[ _]Input)?[*_]*[ \t]*[:：].*$\n?", "", text, flags=re.M | re.I)
