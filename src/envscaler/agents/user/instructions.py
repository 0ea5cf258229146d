"""`UserInstructions`: what the user of a benchmark's conversation is told, and how its own calls are read.

Who says it is the benchmark; what is made of it is the business of `simulator`.
"""

from __future__ import annotations

import json

from envscaler.errors import ReplyError
from envscaler.messages import ToolCall
from envscaler.record import Record
from envscaler.roles.objects import json_in
from envscaler.skeleton import ToolSpec


class UserInstructions(Record):
    """One user."""

    text: str
    """In the benchmark's own words."""
    greeting: str = ""
    """What the assistant is taken to have said first; empty where the user begins."""
    tools: tuple[ToolSpec, ...] = ()
    """What the user can do itself; the assistant has none of them."""
    clock: str = ""
    """The time at which it lives, as it may say it."""
    language: str = "en"

    @property
    def known(self) -> tuple[str, ...]:
        """All that it can know before the conversation."""
        told = (json.dumps([tool.name, tool.description, tool.parameters], ensure_ascii=False) for tool in self.tools)
        return (self.text, self.greeting, self.clock, *told)


def call_in(text: str, tools: tuple[ToolSpec, ...]) -> tuple[ToolCall | None, str | None]:
    """The call that a user's message is, or what is wrong with it; neither where it is no call.

    Args:
        tools: what the user can do; without any, no message is a call.
    """
    if not tools or "{" not in text:
        return None, None
    try:
        found = json_in(text)[0].value
    except ReplyError:
        return None, None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None, None
    name, arguments = found["name"], found.get("arguments", {})
    if name not in {tool.name for tool in tools}:
        return None, f"there is nothing named {name!r} that you can do; there are: {', '.join(t.name for t in tools)}"
    if not isinstance(arguments, dict):
        return None, "arguments has to be a JSON object"
    return ToolCall(name=name, arguments=arguments), None
