"""Rows for ms-swift: calls and observations are messages of their own, roles `tool_call` and `tool_response`.

Source: ms-swift 4.6, dataset/preprocessor/core.py and template/base.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from envscaler.export.formats.layout import SftFormat, calls_of, json_of, thought
from envscaler.export.messages import Chat, Row
from envscaler.trajectory import Trajectory


def _row(chat: Chat, trajectory: Trajectory) -> Row:
    learned = None if chat.all_learned else set(chat.learned or ())
    messages = [row for index, message in enumerate(chat.messages) for row in _messages(message, learned, index)]
    return {"messages": messages, "tools": json_of(list(chat.tools))}


def _messages(message: Row, learned: set[int] | None, index: int) -> Iterator[Row]:
    if message["role"] != "assistant":
        role = "tool_response" if message["role"] == "tool" else message["role"]
        yield {"role": role, "content": message["content"]}
        return
    # The trainer takes the loss of a message from it where it says one.
    loss: Row = {} if learned is None else {"loss": index in learned}
    calls = calls_of(message)
    text = thought(message) + message["content"]
    if message["content"] and calls:
        # It puts what is said and the calls together as they are, and Qwen's template has a line break there.
        text = f"{text.rstrip(chr(10))}\n"
    if text or not calls:
        yield {"role": "assistant", "content": text, **loss}
    for call in calls:
        content = json_of({"name": call["name"], "arguments": call["arguments"]})
        yield {"role": "tool_call", "content": content, **loss}


SWIFT = SftFormat(
    name="swift",
    summary="`messages` with roles `tool_call` and `tool_response`, and `tools` as a JSON string, for ms-swift.",
    row=_row,
    columns={"messages": [{"role": "string", "content": "string", "loss": "bool"}], "tools": "string"},
)
