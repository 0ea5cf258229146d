"""A chat as plain text messages, tools and calls written as Qwen 2.5 and Qwen 3 are served them (Hermes' form).

For trainers that cannot render calls themselves, or not without loss. Reasoning stays apart.

Source: Qwen's chat templates; the paper's authors train on text made by them.
"""

from __future__ import annotations

from dataclasses import replace

from envscaler.export.formats.layout import calls_of, json_of
from envscaler.export.messages import Chat, Row

_TOOLS = """\
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


def plain_chat(chat: Chat) -> Chat:
    """The chat without tools, calls and messages of tools; the observations of one turn are one message of the user."""
    messages: list[Row] = []
    at: dict[int, int] = {}
    answering = False
    for index, message in enumerate(chat.messages):
        if message["role"] == "tool":
            text = f"<tool_response>\n{message['content']}\n</tool_response>"
            if answering:
                messages[-1] = {"role": "user", "content": f"{messages[-1]['content']}\n{text}"}
            else:
                messages.append({"role": "user", "content": text})
        else:
            at[index] = len(messages)
            messages.append(_plain(message, chat.tools))
        answering = message["role"] == "tool"
    learned = None if chat.learned is None else tuple(at[turn] for turn in chat.learned)
    return replace(chat, messages=tuple(messages), tools=(), learned=learned)


def _plain(message: Row, tools: tuple[Row, ...]) -> Row:
    if message["role"] == "system" and tools:
        listed = _TOOLS.format(tools="\n".join(map(json_of, tools)))
        return {**message, "content": f"{message['content']}\n\n{listed}" if message["content"] else listed}
    if "tool_calls" not in message:
        return message
    calls = [
        f"<tool_call>\n{json_of({'name': call['name'], 'arguments': call['arguments']})}\n</tool_call>"
        for call in calls_of(message)
    ]
    rest = {key: part for key, part in message.items() if key != "tool_calls"}
    return {**rest, "content": "\n".join(filter(None, [message["content"], *calls]))}
