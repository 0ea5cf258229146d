"""The dialect of Hermes, Qwen 2.5 and Qwen 3: `<tool_call>` around a JSON object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from envscaler.agents.dialects.dialect import DialectName, Kept
from envscaler.agents.dialects.lenient_json import json_text
from envscaler.agents.dialects.shape import Found, Tools
from envscaler.agents.dialects.tags import CALL_CLOSE, CALL_OPEN, tagged_calls
from envscaler.agents.dialects.text_dialect import TextDialect, one_by_one
from envscaler.messages import ToolCall, ToolMessage


class HermesDialect(TextDialect):
    """`<tool_call>` with `name` and `arguments`, results in `<tool_response>`."""

    name: ClassVar[DialectName] = "hermes"
    form = (
        'Write a call as <tool_call>\n{"name": "tool", "arguments": {"parameter": "value"}}\n</tool_call>, '
        "and an answer without any tags."
    )
    default_reasoning: ClassVar[Kept] = "turn"

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return one_by_one(calls, _call_text)

    def results_text(self, results: Sequence[ToolMessage]) -> str:
        return "\n".join(f"<tool_response>\n{result.content}\n</tool_response>" for result in results)

    def find(self, text: str, tools: Tools) -> list[Found]:
        found = tagged_calls(text, tools)
        for stretch in found:
            for attempt in stretch.attempts:
                if re.search(r"<function[=\s]", attempt.text[:40]) and attempt.fault != "cut_call":
                    attempt.slips.insert(0, "other_dialect")
        return found


def _call_text(call: ToolCall) -> str:
    return f"{CALL_OPEN}\n{json_text({'name': call.name, 'arguments': call.arguments})}\n{CALL_CLOSE}"
