"""What is said and called."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class ToolCall:
    name: str
    arguments: dict[str, Any]
    requestor: str = "assistant"
    id: str = ""


@dataclass
class Message:
    role: str
    content: str | None = None
    tool_calls: list[ToolCall] | None = None


class AssistantMessage(Message):
    """The agent's."""


class UserMessage(Message):
    """The user's."""


@dataclass
class ToolMessage:
    role: str
    id: str = ""
    content: str | None = None
    requestor: str = "assistant"
    error: bool = field(default=False)
