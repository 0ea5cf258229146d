"""A hotel with free rooms, or a line that is lit once both sides have done something."""

import json
from typing import Any

from tau2.data_model.message import ToolCall, ToolMessage
from tau2.environment.tool import Tool
from tau2.environment.toolkit import Kit, ToolType

calls_made = 0
"""Kept in the module, as a benchmark should not."""


class Environment:
    def __init__(self, domain: str) -> None:
        self.tools = Kit({"rooms": 5, "on": 0}, {"count": ToolType.READ, "book": ToolType.WRITE})
        self.user_tools = Kit({"switch": 0}, {"press": ToolType.WRITE}) if domain == "telecom" else None

    def get_policy(self) -> str:
        return "Book rooms."

    def get_tools(self) -> list[Tool]:
        return [Tool(name) for name in self.tools.types]

    def get_user_tools(self) -> list[Tool]:
        assert self.user_tools is not None
        return [Tool(name) for name in self.user_tools.types]

    def set_state(self, data: dict[str, int] | None, actions: None, history: list[Any]) -> None:
        self.tools.db.update(data or {})
        for index, message in enumerate(history):
            for call in getattr(message, "tool_calls", None) or ():
                if self.get_response(call).content != history[index + 1].content:
                    raise ValueError("it came to something else")

    def sync_tools(self) -> None:
        if self.user_tools is not None:
            self.tools.db["on"] = self.user_tools.db["switch"]

    def make_tool_call(self, tool_name: str, requestor: str, **arguments: Any) -> str:
        global calls_made
        kit = self.user_tools if requestor == "user" else self.tools
        if kit is None or not kit.has_tool(tool_name):
            raise ValueError(f"Tool '{tool_name}' not found.")
        calls_made += 1
        if tool_name == "press":
            kit.db["switch"] = 1 - kit.db["switch"]
            return "click"
        if tool_name == "book":
            if kit.db["rooms"] < arguments["rooms"]:
                raise ValueError("too few rooms")
            kit.db["rooms"] -= arguments["rooms"]
        return f"{kit.db['rooms']} left"

    def get_response(self, call: ToolCall) -> ToolMessage:
        try:
            content, error = self.make_tool_call(call.name, requestor=call.requestor, **call.arguments), False
            self.sync_tools()
        except Exception as fault:  # noqa: BLE001 - as the benchmark does
            content, error = f"Error: {fault}", True
        return ToolMessage(role="tool", id=call.id, content=content, requestor=call.requestor, error=error)

    def get_db_hash(self) -> str:
        return json.dumps(self.tools.db, sort_keys=True)

    def get_user_db_hash(self) -> str | None:
        return json.dumps(self.user_tools.db) if self.user_tools is not None else None
