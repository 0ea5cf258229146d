"""Agents without a model: `OracleAgent` plays the recorded solution, `RandomAgent` and `NoopAgent` are the floors."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from random import Random

from envscaler.agents.agent import AgentKind, Briefing
from envscaler.llm.chat import Completion
from envscaler.messages import AssistantMessage, Message, ToolCall, ToolMessage
from envscaler.probe import valid_arguments
from envscaler.scenario import Scenario
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue, digest
from envscaler.trajectory import Usage

ORACLE_FINAL = "Everything you asked for is done."
NOOP_FINAL = "I have nothing to do."
RANDOM_FINAL = "That is all."


class OracleAgent:
    """Plays the recorded solution call by call, values of earlier results put in, then ends."""

    kind: AgentKind = "oracle"
    model: str | None = None

    def unplayable(self, scenario: Scenario) -> str | None:
        return "no recorded solution" if scenario.solution is None else None

    def start(self, briefing: Briefing) -> _OraclePlayer:
        return _OraclePlayer(briefing)


class _OraclePlayer:
    def __init__(self, briefing: Briefing) -> None:
        scenario = briefing.scenario
        if scenario is None or scenario.solution is None:
            raise ValueError("the oracle plays scenarios with a recorded solution only; ask unplayable() first")
        self._solution = scenario.solution

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        results = [_result(message.content) for message in conversation if isinstance(message, ToolMessage)]
        done = len(results)
        if done >= len(self._solution):
            return _said("oracle", ORACLE_FINAL)
        call = self._solution[done]
        arguments = call.resolved(results)
        return _called("oracle", ToolCall(name=call.name, arguments=arguments, id=f"call_{done}_0"))


class RandomAgent:
    """Calls tools at random with arguments that fit their schemas and the initial state; seeded."""

    kind: AgentKind = "random"
    model: str | None = None

    def __init__(self, calls: int = 10) -> None:
        """
        Args:
            calls: calls at most before it ends the episode.
        """
        self._calls = calls

    def unplayable(self, scenario: Scenario) -> str | None:
        return None

    def start(self, briefing: Briefing) -> _RandomPlayer:
        return _RandomPlayer(briefing, self._calls)


class _RandomPlayer:
    def __init__(self, briefing: Briefing, calls: int) -> None:
        scenario = briefing.scenario
        self._state = scenario.initial_state if scenario is not None else {}
        self._entities = briefing.entities
        # Drawn from the scenario too, or every scenario of an environment would see the same calls.
        pins = [scenario.digest if scenario is not None else "", briefing.seed, briefing.sample]
        self._rng = Random(digest(pins))
        self._wanted = self._rng.randint(1, max(1, calls))
        self._made = 0

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        if not tools or self._made >= self._wanted:
            return _said("random", RANDOM_FINAL)
        tool = self._rng.choice(list(tools))
        arguments = valid_arguments(tool, self._state, self._entities, self._rng)
        self._made += 1
        return _called("random", ToolCall(name=tool.name, arguments=arguments, id=f"call_{self._made - 1}_0"))


class NoopAgent:
    """Ends at once: what it earns is what doing nothing is worth."""

    kind: AgentKind = "noop"
    model: str | None = None

    def unplayable(self, scenario: Scenario) -> str | None:
        return None

    def start(self, briefing: Briefing) -> _NoopPlayer:
        return _NoopPlayer()


class _NoopPlayer:
    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        return _said("noop", NOOP_FINAL)


def _called(agent: AgentKind, call: ToolCall) -> Completion:
    return Completion(
        message=AssistantMessage(tool_calls=(call,)),
        finish_reason="tool_calls",
        usage=Usage(),
        model=agent,
        cost_usd=0.0,
    )


def _said(agent: AgentKind, text: str) -> Completion:
    return Completion(message=AssistantMessage(content=text), usage=Usage(), model=agent, cost_usd=0.0)


def _result(observation: str) -> JsonValue:
    try:
        return json.loads(observation)
    except ValueError:
        pass
    try:
        # Environments of the authors' release show results as Python writes them.
        return ast.literal_eval(observation)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
