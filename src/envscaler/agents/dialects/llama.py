"""The dialect of Llama 3: a JSON object with `name` and `parameters`, alone or after `<|python_tag|>`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from envscaler.agents.dialects.dialect import DialectName
from envscaler.agents.dialects.lenient_json import json_text
from envscaler.agents.dialects.marks import LLAMA_KEYS, PYTHON_TAG, llama_attempts, python_tagged_calls
from envscaler.agents.dialects.shape import Found, Tools
from envscaler.agents.dialects.text_dialect import TextDialect, one_by_one
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage

_OBJECT_CALL = re.compile(r"""\s*(?:\{\s*["']?(?:type["']\s*:\s*["']function["']\s*,\s*["'])?name["']?\s*:|\[\s*\{)""")


class LlamaDialect(TextDialect):
    """The object is the whole reply; after other text the tag tells it apart. Several calls are parted by `; `."""

    name: ClassVar[DialectName] = "llama"
    form = 'Write a call as {"name": "tool", "parameters": {"parameter": "value"}} and nothing else.'
    keys = LLAMA_KEYS

    def text_of(self, message: AssistantMessage, tools: Tools) -> str:
        if message.content and message.tool_calls:
            bare = message.model_copy(update={"content": "", "reasoning": None})
            said = message.model_copy(update={"tool_calls": ()})
            return f"{super().text_of(said, tools)}\n{PYTHON_TAG}{super().text_of(bare, tools)}"
        return super().text_of(message, tools)

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return one_by_one(calls, lambda call: json_text({"name": call.name, "parameters": call.arguments}), "; ")

    def results_text(self, results: Sequence[ToolMessage]) -> str:
        return "\n\n".join(f"Output of {result.name}:\n{result.content}" for result in results)

    def find(self, text: str, tools: Tools) -> list[Found]:
        first = self._object_call(text, tools)
        position = first.end if first is not None else 0
        tagged = [
            Found(stretch.start + position, stretch.end + position, stretch.attempts)
            for stretch in python_tagged_calls(text[position:], tools)
        ]
        return [first, *tagged] if first is not None else tagged

    def _object_call(self, text: str, tools: Tools) -> Found | None:
        """The calls with which a reply begins."""
        if not _OBJECT_CALL.match(text):
            return None
        start = len(text) - len(text.lstrip())
        attempts, end = llama_attempts(text, start, tools)
        known = any(attempt.name in tools for attempt in attempts)
        # An answer can be JSON with a name too; one that has parameters, or names a tool, is a call.
        if not known and (text[start] == "[" or not _has_arguments(text[start:end])):
            return None
        if len(attempts) == 1:
            attempts[0].text = text[start:end]
        return Found(start, end, attempts)


def _has_arguments(text: str) -> bool:
    return re.search(r"[\"'](?:parameters|arguments)[\"']\s*:", text) is not None
