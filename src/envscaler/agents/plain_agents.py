"""Agents without a model that know nothing: `RandomAgent` and `NoopAgent`, the floors of every score."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from envscaler.agents.agent import AgentKind, Briefing
from envscaler.agents.saying import called, said
from envscaler.llm.chat import Completion
from envscaler.messages import Message, ToolCall
from envscaler.probe import valid_arguments
from envscaler.scenario import Scenario
from envscaler.skeleton import ToolSpec
from envscaler.state import digest

NOOP_FINAL = "I have nothing to do."
RANDOM_FINAL = "That is all."


class RandomAgent:
    """Calls tools at random with arguments that fit their schemas and the initial state; seeded."""

    kind: AgentKind = "random"
    model: str | None = None
    dialect: str | None = None

    def __init__(self, calls: int = 10) -> None:
        """
        Args:
            calls: calls at most before it ends the episode, or in worlds without scenarios of ours its turn.
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
        pins = [scenario.digest if scenario is not None else briefing.task, briefing.seed, briefing.sample]
        self._rng = Random(digest(pins))
        self._most = max(1, calls)
        self._wanted = self._rng.randint(1, self._most)
        self._made = 0
        # A simulated user goes on until the task is told; elsewhere each user message is a task of its own.
        self._every_turn = scenario is None
        self._turns = 1

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        turns = sum(message.role == "user" for message in conversation)
        if self._every_turn and turns > self._turns:
            self._turns, self._wanted = turns, self._made + self._rng.randint(1, self._most)
        if not tools or self._made >= self._wanted:
            return said("random", RANDOM_FINAL)
        tool = self._rng.choice(list(tools))
        arguments = valid_arguments(tool, self._state, self._entities, self._rng)
        self._made += 1
        return called("random", ToolCall(name=tool.name, arguments=arguments, id=f"call_{self._made - 1}_0"))


class NoopAgent:
    """Ends at once: what it earns is what doing nothing is worth."""

    kind: AgentKind = "noop"
    model: str | None = None
    dialect: str | None = None

    def unplayable(self, scenario: Scenario) -> str | None:
        return None

    def start(self, briefing: Briefing) -> _NoopPlayer:
        return _NoopPlayer()


class _NoopPlayer:
    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        return said("noop", NOOP_FINAL)
