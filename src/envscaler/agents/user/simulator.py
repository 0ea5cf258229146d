"""`UserSimulator`: a model that plays the user of a conversation, reveals the task in parts and says when it is over.

Source: paper section 5, conversation. What the agent does meanwhile is not its business, nor how slips are found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Literal

from envscaler.agents.user.brief import Brief, Heard
from envscaler.agents.user.instructions import UserInstructions, call_in
from envscaler.agents.user.slips import FAULTS, SlipKind, slips_of
from envscaler.agents.user.stopping import STOP_TOKEN, UserTurn, parse_user_turn
from envscaler.llm.chat import ChatModel
from envscaler.messages import AssistantMessage, Message, ToolMessage, UserMessage
from envscaler.record import Record
from envscaler.roles.ask import ask
from envscaler.roles.role import PLAY_USER, USER_TURN, Prompts, Role
from envscaler.roles.types import HeardLine, PlayUserInputs, TextReply, UserTurnInputs
from envscaler.scenario import Scenario
from envscaler.skeleton import ModelUse, ToolSpec
from envscaler.trajectory import Sampling, Slip, UserRecord, UserUtterance

SlipPolicy = Literal["keep", "retry", "mask"]
"""What is made of a slip: it is only counted; the model is asked again; and what slips all the same masks the episode.

Source: AutoForge (arXiv 2512.22857) leaves out episodes that failed through the simulated user's fault.
"""

RETRIES = 2
"""Times that the model is asked again because of a slip."""
_ATTEMPTS = 3
"""Questions at most for a message that can be used at all."""


class UserSimulator:
    """The user of one conversation."""

    def __init__(
        self,
        model: ChatModel,
        scenario: Scenario | UserInstructions,
        *,
        prompts: Prompts,
        sample: int = 0,
        language: str = "en",
        sampling: Sampling | None = None,
        slips: SlipPolicy = "retry",
    ) -> None:
        """
        Args:
            scenario: what it plays: a scenario of our own, or the instructions of a benchmark.
        """
        self._model = model
        self._scenario = scenario
        self._prompts = prompts
        self._sample = sample
        self._language = language
        self._sampling = sampling
        self._policy = slips
        self._brief = Brief(scenario)
        self._utterances: list[UserUtterance] = []
        self._deeds: list[tuple[int, str, str]] = []
        """Calls of its own, with what came of them, each after so many messages of the conversation."""
        self.use = ModelUse()
        """Tokens and cost so far."""
        self.masked: str | None = None
        """Why the episode says nothing about the agent; None while it does."""

    @property
    def role(self) -> Role[TextReply]:
        """The role in which its model is asked."""
        return PLAY_USER if isinstance(self._scenario, UserInstructions) else USER_TURN

    @property
    def record(self) -> UserRecord:
        """What it said so far."""
        return UserRecord(model=self._model.name, utterances=tuple(self._utterances))

    async def speak(self, conversation: Sequence[Message]) -> UserTurn:
        """The user's next message.

        Args:
            conversation: everything so far; the user sees neither system prompt nor tools nor observations.

        Raises:
            ReplyError: if the model gave no usable message; the episode is then worth nothing either way.
        """
        inputs = self._inputs(conversation)
        review = _Review(self._brief, conversation, self._tools, 0 if self._policy == "keep" else RETRIES, self._seen)
        answer = await ask(
            self._model,
            self.role,
            inputs,
            prompts=self._prompts,
            doubt=review.doubt,
            sample=self._sample,
            attempts=_ATTEMPTS + review.retries,
            sampling=self._sampling,
        )
        self.use = self.use + answer.use
        turn, slips = review.turn, list(review.slips)
        if answer.attempts - 1 > review.objections:
            slips.append(Slip(kind="empty", repaired=True))
        endless = next((slip for slip in slips if slip.kind == "never_stops" and not slip.repaired), None)
        said = Heard(message.content for message in conversation if isinstance(message, UserMessage))
        if endless is not None and self._policy != "keep" and not self._brief.untold(said):
            # All is told and reported: ending the conversation for it costs nobody anything.
            slips[slips.index(endless)] = endless.model_copy(update={"repaired": True})
            turn = UserTurn(turn.text, True, turn.slips, turn.reasoning)
        thoughts = [text for text in (answer.reasoning, turn.reasoning) if text]
        self._utterances.append(
            UserUtterance(text=answer.reply.text, reasoning="\n".join(thoughts) or None, slips=tuple(slips))
        )
        left = next((slip for slip in slips if not slip.repaired), None)
        if left is not None and self._policy == "mask" and self.masked is None:
            self.masked = f"the simulated user slipped in message {len(self._utterances)}: {left.kind} ({left.detail})"
        return turn

    def saw(self, conversation: Sequence[Message], observation: ToolMessage) -> None:
        """Take note of what came of the call that it made instead of its last message."""
        last = self._utterances[-1]
        self._utterances[-1] = last.model_copy(update={"observation": observation})
        self._deeds.append((len(conversation), last.text, observation.content))

    @property
    def _tools(self) -> tuple[ToolSpec, ...]:
        return self._scenario.tools if isinstance(self._scenario, UserInstructions) else ()

    @property
    def _seen(self) -> tuple[str, ...]:
        return tuple(seen for _, _, seen in self._deeds)

    def _inputs(self, conversation: Sequence[Message]) -> Record:
        if isinstance(self._scenario, UserInstructions):
            return PlayUserInputs(
                instructions=self._scenario.text,
                greeting=self._scenario.greeting,
                tools=self._scenario.tools,
                transcript=tuple(self._lines(conversation)),
                stop_token=STOP_TOKEN,
                language=self._scenario.language,
            )
        return UserTurnInputs(
            task=self._scenario.task,
            profile=self._scenario.user_profile,
            transcript=tuple(_heard(conversation)),
            stop_token=STOP_TOKEN,
            language=self._language,
        )

    def _lines(self, conversation: Sequence[Message]) -> Iterator[HeardLine]:
        """What it said, heard, did and saw, in this order."""
        deeds = deque(self._deeds)
        for index in range(len(conversation) + 1):
            while deeds and deeds[0][0] == index:
                _, call, seen = deeds.popleft()
                yield HeardLine(speaker="user", text=call)
                yield HeardLine(speaker="tool", text=seen)
            for message in _heard(conversation[index : index + 1]):
                yield HeardLine(
                    speaker="user" if isinstance(message, UserMessage) else "assistant", text=message.content
                )


class _Review:
    """Looks at each reply to one question, and asks again as often as it may."""

    def __init__(
        self,
        brief: Brief,
        conversation: Sequence[Message],
        tools: tuple[ToolSpec, ...],
        retries: int,
        seen: tuple[str, ...],
    ) -> None:
        self._brief = brief
        self._conversation = conversation
        self._tools = tools
        self._also_known = seen
        self.retries = retries
        self.objections = 0
        self._asked_again: dict[str, Slip] = {}
        self._last: tuple[Slip, ...] = ()
        self.turn = UserTurn("", stopped=False)

    def doubt(self, reply: TextReply) -> str | None:
        """What is wrong with a reply; None also where it has been asked often enough."""
        self.turn = parse_user_turn(reply.text)
        call, fault = (None, None) if self.turn.stopped else call_in(self.turn.text, self._tools)
        if call is not None:
            self.turn, self._last = UserTurn("", stopped=False, reasoning=self.turn.reasoning, call=call), ()
            return None
        fault = fault or self._unusable()
        if fault is not None:
            self.objections += 1
            return fault
        self._last = slips_of(self.turn, self._brief, self._conversation, self._also_known)
        left = [slip for slip in self._last if not slip.repaired]
        if not left or self.retries == 0:
            return None
        self.retries -= 1
        self.objections += 1
        self._asked_again.update({slip.kind: slip.model_copy(update={"repaired": True}) for slip in left})
        return "; ".join(_fault(slip) for slip in left)

    def _unusable(self) -> str | None:
        opening = not any(isinstance(message, UserMessage) for message in self._conversation)
        if self.turn.stopped and opening:
            self._asked_again["stops_early"] = Slip(kind="stops_early", detail="the first message", repaired=True)
            return "the conversation has only begun; write the first message, without the stop token"
        if not self.turn.stopped and not self.turn.text:
            self._asked_again["empty"] = Slip(kind="empty", repaired=True)
            return FAULTS["empty"]
        return None

    @property
    def slips(self) -> tuple[Slip, ...]:
        """One of each kind: those of the last reply, and those that it was asked again for and does not have."""
        kinds = {slip.kind for slip in self._last}
        return (*self._last, *(slip for kind, slip in self._asked_again.items() if kind not in kinds))


def _fault(slip: Slip) -> str:
    kind: SlipKind = slip.kind  # type: ignore[assignment]  # the kinds of users' slips are these
    return FAULTS[kind].format(detail=slip.detail)


def _heard(conversation: Sequence[Message]) -> list[Message]:
    heard: list[Message] = []
    for message in conversation:
        if isinstance(message, UserMessage):
            heard.append(message)
        elif isinstance(message, AssistantMessage) and not message.tool_calls:
            heard.append(AssistantMessage(content=message.content))
    return heard
