"""A trajectory as the messages that trainers take, and whether it is well formed enough to learn from.

Which trajectories are exported, and how each trainer wants its rows, is not this module's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from envscaler.messages import AssistantMessage, ToolMessage, all_as_carried_out
from envscaler.trajectory import Trajectory

Row = dict[str, Any]
"""One line of a training file."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation that can be learned: messages and tools in OpenAI's form, arguments as objects."""

    messages: tuple[Row, ...]
    tools: tuple[Row, ...] = ()
    learned: tuple[int, ...] | None = None
    """Indices of the agent's messages that are learned, where they are not all: a sample of one cut by a template."""
    tokens: tuple[tuple[int, bool], ...] = ()
    """Of a sample cut by a template and a tokenizer its tokens, each with whether it is learned."""

    @property
    def turns(self) -> tuple[int, ...]:
        """Indices of the agent's messages."""
        return tuple(index for index, message in enumerate(self.messages) if message["role"] == "assistant")

    @property
    def all_learned(self) -> bool:
        """Whether every message of the agent is learned."""
        return self.learned is None or set(self.learned) >= set(self.turns)

    def stretches(self) -> Iterator[Chat]:
        """The chat as samples in each of which what is learned begins somewhere and goes on to the end."""
        learned = set(self.turns if self.learned is None else self.learned)
        stretch: list[int] = []
        for turn in self.turns:
            if turn in learned:
                stretch.append(turn)
            elif stretch:
                yield self.upto(stretch)
                stretch = []
        if stretch:
            yield self.upto(stretch)

    def upto(self, turns: list[int] | tuple[int, ...]) -> Chat:
        """The part that ends with the last of these messages of the agent, which are what is learned of it."""
        return replace(self, messages=self.messages[: turns[-1] + 1], learned=tuple(turns))


def chat_of(trajectory: Trajectory) -> Chat:
    """The whole episode, as it was sent to a model that calls tools natively.

    Arguments are objects, because templates encode a string a second time; keys without a value are left out, because
    a null would be learned. Calls stand as they were carried out, because one that had to be put right first would be
    learned too, and fails where nothing puts it right.
    """
    messages: list[Row] = [{"role": "system", "content": trajectory.system_prompt}]
    for step in trajectory.steps:
        if step.user is not None:
            messages.append({"role": "user", "content": step.user.content})
        messages.append(_assistant(all_as_carried_out(step.assistant, step.observations)))
        messages += [_tool(observation) for observation in step.observations]
    return Chat(tuple(messages), tuple(tool.to_openai() for tool in trajectory.tools))


def chat_row(trajectory: Trajectory) -> Row:
    """`messages` and `tools` in OpenAI's form as TRL and others read it."""
    chat = chat_of(trajectory)
    return {"messages": list(chat.messages), "tools": list(chat.tools)}


def format_fault(trajectory: Trajectory) -> str | None:
    """What keeps a trajectory from being a well-formed conversation; None when nothing does."""
    if not trajectory.system_prompt:
        return "no system prompt"
    if not trajectory.steps or trajectory.steps[0].user is None:
        return "no conversation"
    names = {tool.name for tool in trajectory.tools}
    for index, step in enumerate(trajectory.steps):
        message = step.assistant
        last = index == len(trajectory.steps) - 1
        if not message.tool_calls and not message.content.strip():
            return "an empty message"
        if any(call.malformed is not None for call in message.tool_calls):
            return "a call whose arguments are no JSON object"
        if any(call.name not in names for call in message.tool_calls):
            return "a call to a tool that does not exist"
        if [call.id for call in message.tool_calls] != [seen.tool_call_id for seen in step.observations]:
            return "a call without its observation"
        if last and message.tool_calls:
            return "no final message"
        if not last and not message.tool_calls and trajectory.steps[index + 1].user is None:
            return "two assistant messages in a row"
    return None


def _assistant(message: AssistantMessage) -> Row:
    row: Row = {"role": "assistant", "content": message.content}
    if message.reasoning:
        row["reasoning_content"] = message.reasoning
    if message.tool_calls:
        row["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return row


def _tool(observation: ToolMessage) -> Row:
    return {
        "role": "tool",
        "tool_call_id": observation.tool_call_id,
        "name": observation.name,
        "content": observation.content,
    }
