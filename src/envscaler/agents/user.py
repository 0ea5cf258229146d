"""`UserSimulator`: a model that plays the user of a conversation, reveals the task in parts and says when it is over.

Source: paper section 5, conversation. What the agent does meanwhile is not its business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from envscaler.llm.chat import ChatModel
from envscaler.messages import AssistantMessage, Message, UserMessage
from envscaler.roles.ask import ask
from envscaler.roles.role import USER_TURN, Prompts
from envscaler.roles.types import TextReply, UserTurnInputs
from envscaler.scenario import Scenario
from envscaler.skeleton import ModelUse
from envscaler.trajectory import Sampling

STOP_TOKEN = "###STOP###"
_STOP = re.compile(r"#{2,}\s*STOP\s*#{2,}", re.IGNORECASE)


@dataclass(frozen=True)
class UserTurn:
    """What the simulated user said."""

    text: str
    """Without the stop token; may be empty when the user only stopped."""
    stopped: bool


class UserSimulator:
    """The user of one conversation."""

    def __init__(
        self,
        model: ChatModel,
        scenario: Scenario,
        *,
        prompts: Prompts,
        sample: int = 0,
        language: str = "en",
        sampling: Sampling | None = None,
    ) -> None:
        self._model = model
        self._scenario = scenario
        self._prompts = prompts
        self._sample = sample
        self._language = language
        self._sampling = sampling
        self.use = ModelUse()
        """Tokens and cost so far."""

    async def speak(self, conversation: Sequence[Message]) -> UserTurn:
        """The user's next message.

        Args:
            conversation: everything so far; the user sees neither system prompt nor tools nor observations.

        Raises:
            ReplyError: if the model gave no usable message; the episode is then worth nothing either way.
        """
        transcript = tuple(_heard(conversation))
        opening = not transcript
        answer = await ask(
            self._model,
            USER_TURN,
            UserTurnInputs(
                task=self._scenario.task,
                profile=self._scenario.user_profile,
                transcript=transcript,
                stop_token=STOP_TOKEN,
                language=self._language,
            ),
            prompts=self._prompts,
            doubt=_opening_doubt if opening else None,
            sample=self._sample,
            sampling=self._sampling,
        )
        self.use = self.use + answer.use
        return parse_user_turn(answer.reply.text)


def parse_user_turn(text: str) -> UserTurn:
    """Separates the stop token from the text, also where it is glued to it or broken by spaces or case."""
    match = _STOP.search(text)
    if match is None:
        return UserTurn(text=text.strip(), stopped=False)
    return UserTurn(text=text[: match.start()].strip(), stopped=True)


def _opening_doubt(reply: TextReply) -> str | None:
    if parse_user_turn(reply.text).stopped:
        return "the conversation has only begun; write the first message, without the stop token"
    return None


def _heard(conversation: Sequence[Message]) -> list[Message]:
    heard: list[Message] = []
    for message in conversation:
        if isinstance(message, UserMessage):
            heard.append(message)
        elif isinstance(message, AssistantMessage) and not message.tool_calls:
            heard.append(AssistantMessage(content=message.content))
    return heard
