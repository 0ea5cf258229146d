"""The dialect of Mistral: `[TOOL_CALLS]` before a JSON list of calls, or, newer, before `name[ARGS]{…}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from envscaler.agents.dialects.dialect import DialectName, Kept
from envscaler.agents.dialects.lenient_json import json_text
from envscaler.agents.dialects.marks import MISTRAL_KEYS, TOOL_CALLS, marked_calls
from envscaler.agents.dialects.shape import Found, Tools
from envscaler.agents.dialects.text_dialect import TextDialect
from envscaler.messages import ToolCall, ToolMessage

MistralForm = Literal["list", "args"]
"""`list`: `[TOOL_CALLS] [{…}, …]`, to tokenizer version 7. `args`: `[TOOL_CALLS]name[ARGS]{…}`, from version 11."""


class MistralDialect(TextDialect):
    """Both forms are read; one of them is written."""

    name: ClassVar[DialectName] = "mistral"
    form = 'Write calls as [TOOL_CALLS] [{"name": "tool", "arguments": {"parameter": "value"}}] and nothing after it.'
    keys = MISTRAL_KEYS

    def __init__(self, *, parallel: bool = True, reasoning: Kept | None = None, written: MistralForm = "list") -> None:
        super().__init__(parallel=parallel, reasoning=reasoning)
        self.written: MistralForm = written

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        good = [call for call in calls if call.malformed is None]
        parts: list[str] = []
        if good and self.written == "list":
            listed = [{"name": call.name, "arguments": call.arguments} for call in good]
            parts.append(f"{TOOL_CALLS} {json_text(listed)}")
        elif good:
            parts.append("".join(f"{TOOL_CALLS}{call.name}[ARGS]{json_text(call.arguments)}" for call in good))
        parts += [call.malformed for call in calls if call.malformed is not None]
        return "\n".join(parts)

    def results_text(self, results: Sequence[ToolMessage]) -> str:
        return "\n".join(f"[TOOL_RESULTS] {result.content}[/TOOL_RESULTS]" for result in results)

    def find(self, text: str, tools: Tools) -> list[Found]:
        return marked_calls(text, tools)
