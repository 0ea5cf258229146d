"""An episode that was played in a text dialect, as the conversations that its model was really sent.

A dialect tells of tools in the system prompt, writes calls and results as text, and may take earlier reasoning out
again; then one episode is several conversations, as with a chat template (`segmentation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from envscaler.agents.dialects import TextDialect
from envscaler.export.messages import Chat, Row
from envscaler.messages import AssistantMessage, Message, SystemMessage, all_as_carried_out
from envscaler.trajectory import Trajectory


@dataclass(slots=True)
class _Chain:
    """A conversation that may yet go on."""

    messages: list[Row]
    learned: list[int]

    def begins(self, prompt: list[Row]) -> bool:
        return prompt[: len(self.messages)] == self.messages


def spoken_chats(trajectory: Trajectory, dialect: TextDialect) -> tuple[Chat, ...]:
    """The fewest conversations in which each turn of the agent is learned once, on what the model was shown.

    Replies are written as the dialect writes them, not as they came: one that had to be put right first would be
    learned too.
    """
    by_name = {tool.name: tool for tool in trajectory.tools}
    chains: list[_Chain] = []
    said: list[Message] = []
    for message in _messages(trajectory):
        if isinstance(message, AssistantMessage):
            prompt = [_row(part) for part in dialect.render(said, trajectory.tools)]
            chain = next((chain for chain in reversed(chains) if chain.begins(prompt)), None)
            if chain is None:
                chain = _Chain([], [])
                chains.append(chain)
            chain.learned.append(len(prompt))
            chain.messages = [*prompt, {"role": "assistant", "content": dialect.text_of(message, by_name)}]
        said.append(message)
    return tuple(Chat(tuple(chain.messages), (), tuple(chain.learned)) for chain in chains)


def _messages(trajectory: Trajectory) -> Iterator[Message]:
    yield SystemMessage(content=trajectory.system_prompt)
    for step in trajectory.steps:
        if step.user is not None:
            yield step.user
        yield all_as_carried_out(step.assistant, step.observations)
        yield from step.observations


def _row(message: Message) -> Row:
    return {"role": message.role, "content": message.content}
