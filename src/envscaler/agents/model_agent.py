"""`ModelAgent`: a chat model with native function calling.

Retries, caching and budgets are the model's own business.
"""

from __future__ import annotations

from collections.abc import Sequence

from envscaler.agents.agent import AgentKind, Briefing
from envscaler.llm.chat import ChatModel, Completion, ModelRequest
from envscaler.messages import AssistantMessage, Message
from envscaler.models.settings import OFFLINE
from envscaler.roles.role import AGENT_TURN
from envscaler.roles.types import AgentTurnInputs
from envscaler.scenario import Scenario
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import Sampling


class ModelAgent:
    """Lets a chat model play: it is sent the conversation and the tools, and nothing else."""

    kind: AgentKind = "model"

    def __init__(self, model: ChatModel, sampling: Sampling | None = None) -> None:
        self._model = model
        self._sampling = sampling if sampling is not None else Sampling()

    @property
    def model(self) -> str:
        return self._model.name

    def unplayable(self, scenario: Scenario) -> str | None:
        if self._model.name == OFFLINE and scenario.solution is None:
            return "no recorded solution, and the offline model has only that to play"
        return None

    def start(self, briefing: Briefing) -> _ModelPlayer:
        return _ModelPlayer(self._model, self._sampling, briefing)


class _ModelPlayer:
    def __init__(self, model: ChatModel, sampling: Sampling, briefing: Briefing) -> None:
        self._model = model
        self._sampling = sampling
        self._briefing = briefing

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        messages = tuple(conversation)
        completion = await self._model.complete(
            ModelRequest(
                role=AGENT_TURN.name,
                inputs=self._inputs(messages),
                messages=messages,
                tools=tuple(tools),
                sampling=self._sampling,
                sample=(self._briefing.sample, 0),
            )
        )
        turns = sum(isinstance(message, AssistantMessage) for message in messages)
        return completion.model_copy(update={"message": _with_ids(completion.message, turns)})

    def _inputs(self, messages: tuple[Message, ...]) -> AgentTurnInputs:
        scenario = self._briefing.scenario
        # The solution is filled in for the one model that is no language model; no endpoint could even be told it.
        told = scenario is not None and self._model.name == OFFLINE
        return AgentTurnInputs(
            task=scenario.task if scenario is not None else "",
            solution=scenario.solution if told and scenario is not None else None,
            conversation=messages,
            language=self._briefing.language,
        )


def _with_ids(message: AssistantMessage, turn: int) -> AssistantMessage:
    """The message with call ids that are unique in the conversation.

    Some servers send none, or the same ones in every reply; then an observation could not name its call.
    """
    if not message.tool_calls:
        return message
    calls = tuple(
        call.model_copy(update={"id": f"call_{turn}_{index}"}) for index, call in enumerate(message.tool_calls)
    )
    return message.model_copy(update={"tool_calls": calls})
