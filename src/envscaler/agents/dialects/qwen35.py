"""The dialect of Qwen 3.5 and Qwen 3 Coder: `<function=…>` with a `<parameter=…>` for each argument."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from envscaler.agents.dialects.dialect import DialectName, Kept
from envscaler.agents.dialects.shape import Found, Tools, parameters_of
from envscaler.agents.dialects.tags import CALL_CLOSE, CALL_OPEN, tagged_calls
from envscaler.agents.dialects.text_dialect import TextDialect, one_by_one
from envscaler.agents.dialects.typed_text import encoded
from envscaler.messages import ToolCall, ToolMessage


class Qwen35Dialect(TextDialect):
    """Values stand as bare text between tags; what type they are says the tool's schema."""

    name: ClassVar[DialectName] = "qwen3.5"
    form = (
        "Write a call as <tool_call>\n<function=tool>\n<parameter=name>\nvalue\n</parameter>\n</function>\n"
        "</tool_call>, and an answer without any tags."
    )
    default_reasoning: ClassVar[Kept] = "turn"
    separator = "\n\n"

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return one_by_one(calls, lambda call: _call_text(call, tools))

    def results_text(self, results: Sequence[ToolMessage]) -> str:
        return "\n".join(f"<tool_response>\n{result.content}\n</tool_response>" for result in results)

    def find(self, text: str, tools: Tools) -> list[Found]:
        found = tagged_calls(text, tools)
        for stretch in found:
            for attempt in stretch.attempts:
                if not re.search(r"<function[=\s]", attempt.text) and attempt.fault not in (
                    "cut_call",
                    "unreadable_call",
                ):
                    attempt.slips.insert(0, "other_dialect")
        return found


def _call_text(call: ToolCall, tools: Tools) -> str:
    schemas = parameters_of(tools.get(call.name))
    parameters = "".join(
        f"<parameter={name}>\n{encoded(value, schemas.get(name))}\n</parameter>\n"
        for name, value in call.arguments.items()
    )
    return f"{CALL_OPEN}\n<function={call.name}>\n{parameters}</function>\n{CALL_CLOSE}"
