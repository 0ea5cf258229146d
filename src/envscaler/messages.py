"""Messages of a conversation between user, agent and tools, and their OpenAI wire form.

Which model answers, and how a dialect writes tool calls as text, is not this module's business.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated, Any, Literal

from pydantic import Field

from envscaler.record import Record
from envscaler.state import JsonValue


class ToolCall(Record):
    """A request to call one tool."""

    name: str
    """Name of the tool, as the agent wrote it; it need not exist."""
    arguments: dict[str, JsonValue] = {}
    """Argument values by parameter name."""
    id: str | None = None
    """Id that ties the call to its observation; None outside a conversation."""
    malformed: str | None = None
    """The text of the arguments when it was not a JSON object; then `arguments` is empty."""


NOT_MADE = "not_made"
"""Fault of a call that never reached the environment, because of the form of the reply that it stands in."""


class SystemMessage(Record):
    """Instructions to the model."""

    role: Literal["system"] = "system"
    content: str


class UserMessage(Record):
    """What the user said."""

    role: Literal["user"] = "user"
    content: str


class AssistantMessage(Record):
    """What the model said, with its reasoning kept apart."""

    role: Literal["assistant"] = "assistant"
    content: str = ""
    """Visible text; empty when the model only called tools."""
    reasoning: str | None = None
    """Reasoning text, when the endpoint or a `<think>` block gave one."""
    tool_calls: tuple[ToolCall, ...] = ()


class ToolMessage(Record):
    """The observation that answers one tool call."""

    role: Literal["tool"] = "tool"
    content: str
    tool_call_id: str
    name: str
    """Name of the tool that was called."""
    is_error: bool = False
    """True when the call was not carried out or raised; a tool's own failure result is no error."""
    arguments: dict[str, JsonValue] | None = None
    """What the program was given in place of the arguments of the call, where they were coerced."""
    fault: str | None = None
    """Why the tool gave no result, as the sandbox names it (`raised`, `timeout` …), or `NOT_MADE`; None when it gave
    one, or the environment refused the call."""


Message = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


def as_carried_out(call: ToolCall, observation: ToolMessage) -> ToolCall:
    """The call with the arguments that the program was given, by the observation that answers it."""
    return call if observation.arguments is None else call.model_copy(update={"arguments": observation.arguments})


def all_as_carried_out(message: AssistantMessage, observations: Sequence[ToolMessage]) -> AssistantMessage:
    """The message with each call as the program was given it, by the observations that answer them in their order."""
    if all(observation.arguments is None for observation in observations):
        return message
    pairs = zip_longest(message.tool_calls, observations[: len(message.tool_calls)])
    calls = tuple(call if seen is None else as_carried_out(call, seen) for call, seen in pairs)
    return message.model_copy(update={"tool_calls": calls})


def to_openai(message: Message, *, reasoning: bool = False) -> dict[str, Any]:
    """The message as OpenAI's chat completions API takes it; arguments become a JSON string, as there.

    Args:
        reasoning: send reasoning too, as `reasoning_content`, which is what servers with chat templates read.
    """
    if isinstance(message, AssistantMessage):
        out: dict[str, Any] = {"role": "assistant", "content": message.content}
        if reasoning and message.reasoning:
            out["reasoning_content"] = message.reasoning
        if message.tool_calls:
            out["tool_calls"] = [
                {
                    "id": call.id or f"call_{index}",
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": call.malformed
                        if call.malformed is not None
                        else json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for index, call in enumerate(message.tool_calls)
            ]
        return out
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    return {"role": message.role, "content": message.content}
