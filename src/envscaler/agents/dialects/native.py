"""The endpoint's own function calling. Small servers take tools and give the call back as text: that is read too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from envscaler.agents.dialects.bare import bare_calls
from envscaler.agents.dialects.dialect import NO_REPLY, DialectName, Kept, Memory, Reading
from envscaler.agents.dialects.foreign import foreign_calls
from envscaler.agents.dialects.made_calls import made_call
from envscaler.agents.dialects.reply_reader import ReplyReader, assembled, faulty
from envscaler.agents.dialects.shape import Found, Tools
from envscaler.agents.dialects.slips import slip
from envscaler.llm.chat import Completion
from envscaler.messages import AssistantMessage, Message, ToolMessage, UserMessage
from envscaler.record import JsonSchema
from envscaler.skeleton import ToolSpec


class NativeDialect(ReplyReader):
    """Messages go out as they are, and calls come back as calls."""

    name: ClassVar[DialectName] = "native"
    form = "Make calls as tool calls, with arguments that are a JSON object."
    sends_tools = True
    sends_reasoning = True
    default_reasoning: ClassVar[Kept] = "turn"

    def tools_text(self, tools: Sequence[ToolSpec]) -> str:
        return ""

    def system_text(self, prompt: str, tools: Sequence[ToolSpec]) -> str:
        return prompt

    def response_schema(self, tools: Sequence[ToolSpec]) -> JsonSchema | None:
        return None

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], memory: Memory | None = None
    ) -> tuple[Message, ...]:
        if _go_as_they_are(messages):
            return tuple(messages)
        memory = memory if memory is not None else Memory()
        told = max((index for index, message in enumerate(messages) if isinstance(message, UserMessage)), default=-1)
        nameless: set[str] = set()
        out: list[Message] = []
        for index, message in enumerate(messages):
            if isinstance(message, ToolMessage) and message.tool_call_id in nameless:
                # There is no call that it could answer.
                said = message.content
                out.append(memory.kept((message,), None, partial(UserMessage, content=said)))
            elif isinstance(message, AssistantMessage):
                kept = message.reasoning is None or self.shows(index, told)
                nameless |= {call.id for call in message.tool_calls if not call.name and call.id is not None}
                out.append(memory.kept((message,), kept, partial(_sendable, message, kept)))
            else:
                out.append(message)
        return tuple(out)

    def find(self, text: str, tools: Tools) -> list[Found]:
        return []

    def strays(self, text: str, tools: Tools) -> list[Found]:
        found = foreign_calls(text, tools, self.name) or bare_calls(text, tools, self.keys)
        for stretch in found:
            for attempt in stretch.attempts:
                # In what form a call came that is no text at all is of no interest.
                shown = [kind for kind in attempt.slips if kind not in ("other_dialect", "missing_wrapper")]
                attempt.slips = ["call_in_content", *shown]
        return found

    def read(self, completion: Completion, tools: Sequence[ToolSpec]) -> Reading:
        message = completion.message
        if completion.finish_reason == "length":
            return Reading(message, (slip("cut_reply", repaired=False),), "cut_reply")
        if not message.tool_calls:
            if not message.content.strip() and completion.text is None:
                return faulty("empty_reply", "", message.reasoning, ())
            if completion.finish_reason == "content_filter":
                return Reading(message)
            if message.content.strip() and not _may_hold_call(completion.text or message.content, tools):
                return Reading(message)
            return super().read(completion, tools)
        by_name = {tool.name: tool for tool in tools}
        if all(call.malformed is None and call.name in by_name for call in message.tool_calls):
            return Reading(message)
        attempts = [made_call(call, by_name) for call in message.tool_calls]
        return assembled(message.content, message.reasoning, attempts, by_name, ())


def _go_as_they_are(messages: Sequence[Message]) -> bool:
    """Whether nothing has to be changed; asked at every turn of whole conversations, so by the cheapest signs."""
    for message in messages:
        if type(message) is AssistantMessage:
            calls = message.tool_calls
            if message.reasoning is not None or not (calls or message.content):
                return False
            for call in calls:
                if call.malformed is not None or not call.name:
                    return False
    return True


def _may_hold_call(text: str, tools: Sequence[ToolSpec]) -> bool:
    return "<" in text or "[" in text or "{" in text or "(" in text or any(tool.name in text for tool in tools)


def _sendable(message: AssistantMessage, kept: bool) -> AssistantMessage:
    """The message as every server takes it: they parse the arguments of earlier calls, and refuse what is no JSON."""
    if kept and all(call.malformed is None for call in message.tool_calls):
        return message if message.tool_calls or message.content else message.model_copy(update={"content": NO_REPLY})
    named = [call for call in message.tool_calls if call.name]
    written = [call.malformed or "" for call in message.tool_calls if not call.name]
    content = "\n".join(part for part in (message.content, *written) if part)
    calls = tuple(
        call
        if call.malformed is None
        else call.model_copy(update={"malformed": None, "arguments": {"unreadable": call.malformed}})
        for call in named
    )
    return AssistantMessage(
        content=content if content or calls else NO_REPLY,
        reasoning=message.reasoning if kept else None,
        tool_calls=calls,
    )
