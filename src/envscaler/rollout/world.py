"""What can be played: a `World` opens one episode, answers tool calls and messages, and scores the end.

Own scenarios are one World (`scenario_world`), each benchmark is another. Who decides what to call is the business
of `agents`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from envscaler.agents import Briefing, UserSimulator
from envscaler.messages import Message, ToolCall, ToolMessage, UserMessage
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import StopReason, Verdict


@dataclass(frozen=True)
class Identity:
    """Which episode of which world it is; it becomes the head of the trajectory."""

    world: str
    env_id: str
    scenario_id: str
    env_digest: str
    scenario_digest: str
    seed: int
    """Seed of the environment's session; with the calls it decides every observation."""


@dataclass(frozen=True)
class Opening:
    """How an episode begins."""

    system_prompt: str
    """Empty: the agent is given none."""
    user: UserMessage


@dataclass(frozen=True)
class Score:
    """What the final state is worth."""

    verdict: Verdict | None
    scores: Mapping[str, float] = field(default_factory=dict)
    """Official scores of a benchmark."""


@dataclass(frozen=True)
class TurnRules:
    """What ends the agent's work on one user message, beside a message without tool calls."""

    steps: int | None = None
    """Steps with tool calls at which the episode ends; None: only the step limit of the whole episode counts."""
    empty_replies: bool = False
    """Whether a reply with neither text nor calls ends the turn; else it ends the episode."""


class World(Protocol):
    """One episode of something that can be played.

    Every method may raise `SandboxError`, `EndpointUnavailable` or `ReplyError`: infrastructure, never the agent's
    fault. What an agent does wrong is answered by an observation.
    """

    @property
    def identity(self) -> Identity: ...

    @property
    def briefing(self) -> Briefing:
        """What the agent may know before it begins."""
        ...

    @property
    def turn_rules(self) -> TurnRules:
        """What ends a turn in it."""
        ...

    @property
    def state_digest(self) -> str | None:
        """Digest of the current state; None where there is none to digest."""
        ...

    @property
    def user(self) -> UserSimulator | None:
        """The simulated user; None where there is none."""
        ...

    @property
    def over(self) -> StopReason | None:
        """Why the episode ended with the calls just made; None while it goes on."""
        ...

    async def open(self) -> Opening:
        """Start the episode."""
        ...

    def tools(self, turn: int) -> tuple[ToolSpec, ...]:
        """The tools that the agent has while it works on that user message."""
        ...

    async def call(self, call: ToolCall) -> ToolMessage:
        """Carry out one tool call; whatever goes wrong in it is an observation."""
        ...

    async def next_turn(self, conversation: Sequence[Message]) -> UserMessage | StopReason:
        """What follows a message without tool calls: the user's answer, or why the episode ends there."""
        ...

    async def score(self) -> Score:
        """Judge the current state."""
        ...

    async def close(self) -> None:
        """Release everything; idempotent."""
        ...
