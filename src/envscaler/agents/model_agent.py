"""`ModelAgent`: a chat model that plays, in the dialect that it speaks.

Retries, caching and budgets are the model's own business, what follows of slips `rollout`'s.
"""

from __future__ import annotations

from collections.abc import Sequence

from envscaler.agents.agent import AgentKind, AgentReply, Briefing
from envscaler.agents.dialects import Dialect, Memory, NativeDialect, Reading
from envscaler.llm.chat import ChatModel, Completion, ModelRequest
from envscaler.messages import Message
from envscaler.models.settings import OFFLINE
from envscaler.roles.role import AGENT_TURN
from envscaler.roles.types import AgentTurnInputs
from envscaler.scenario import Scenario
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import Sampling


class ModelAgent:
    """Lets a chat model play: it is sent the conversation and the tools, and nothing else."""

    kind: AgentKind = "model"

    def __init__(self, model: ChatModel, sampling: Sampling | None = None, dialect: Dialect | None = None) -> None:
        """
        Args:
            dialect: None: the endpoint's own function calling.
        """
        self._model = model
        self._dialect: Dialect = dialect if dialect is not None else NativeDialect()
        self._sampling = _with_stops(sampling if sampling is not None else Sampling(), self._dialect.stops)

    @property
    def model(self) -> str:
        return self._model.name

    @property
    def dialect(self) -> str | None:
        return None if self._dialect.name == "native" else self._dialect.name

    def unplayable(self, scenario: Scenario) -> str | None:
        if self._model.name == OFFLINE and scenario.solution is None:
            return "no recorded solution, and the offline model has only that to play"
        return None

    def start(self, briefing: Briefing) -> _ModelPlayer:
        return _ModelPlayer(self._model, self._sampling, self._dialect, briefing)


class _ModelPlayer:
    def __init__(self, model: ChatModel, sampling: Sampling, dialect: Dialect, briefing: Briefing) -> None:
        self._model = model
        self._sampling = sampling
        self._dialect = dialect
        self._briefing = briefing
        self._memory = Memory()
        self._replies = 0

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> AgentReply:
        messages = tuple(conversation)
        dialect = self._dialect
        completion = await self._model.complete(
            ModelRequest(
                role=AGENT_TURN.name,
                inputs=self._inputs(messages),
                messages=dialect.render(messages, tools, self._memory),
                tools=tuple(tools) if dialect.sends_tools else (),
                response_schema=self._memory.kept((tools,), "schema", lambda: dialect.response_schema(tools)),
                sampling=self._sampling,
                sends_reasoning=dialect.sends_reasoning,
                sample=(self._briefing.sample, 0),
            )
        )
        reply = _reply(completion, dialect, dialect.read(completion, tools), self._replies)
        self._replies += 1
        return reply

    def _inputs(self, messages: tuple[Message, ...]) -> AgentTurnInputs:
        scenario = self._briefing.scenario
        # The solution is filled in for the one model that is no language model; no endpoint could even be told it.
        told = scenario is not None and self._model.name == OFFLINE
        # Not validated: the messages are records already, and to look at all of them at every turn is quadratic.
        return AgentTurnInputs.model_construct(
            task=scenario.task if scenario is not None else "",
            solution=scenario.solution if told and scenario is not None else None,
            conversation=messages,
            language=self._briefing.language,
        )


def _reply(completion: Completion, dialect: Dialect, reading: Reading, turn: int) -> AgentReply:
    """The reply as it was read, with call ids that are unique in the conversation.

    Some servers send none, or the same ones in every reply; then an observation could not name its call.
    """
    calls = tuple(
        call.model_copy(update={"id": f"call_{turn}_{index}"}) for index, call in enumerate(reading.message.tool_calls)
    )
    message = reading.message.model_copy(update={"tool_calls": calls}) if calls else reading.message
    written = completion.text if completion.text is not None else completion.message.content
    # What a native reply says stands in the message already, unless something was read out of its text.
    read_out = dialect.name != "native" or completion.message.tool_calls != reading.message.tool_calls
    return AgentReply(
        message=message,
        text=completion.text,
        finish_reason=completion.finish_reason,
        usage=completion.usage,
        model=completion.model,
        latency_s=completion.latency_s,
        cost_usd=completion.cost_usd,
        cached=completion.cached,
        raw=written if read_out and written else None,
        slips=reading.slips,
        fault=reading.fault,
        form=dialect.form if reading.slips else "",
    )


def _with_stops(sampling: Sampling, stops: tuple[str, ...]) -> Sampling:
    """The sampling with the texts at which the dialect stops, unless others were asked for."""
    if not stops or "stop" in sampling.extra:
        return sampling
    return sampling.model_copy(update={"extra": {**sampling.extra, "stop": list(stops)}})
