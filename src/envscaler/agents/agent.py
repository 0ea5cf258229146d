"""What an agent is: it starts one player an episode, and a player answers a conversation with its next message.

Carrying out what it decides, and recording it, is `rollout`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from envscaler.llm.chat import Completion
from envscaler.messages import Message
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import Entity, ToolSpec
from envscaler.trajectory import Mode, Slip

AgentKind = Literal["model", "oracle", "random", "noop"]


@dataclass(frozen=True)
class Briefing:
    """What an agent may know of an episode before it begins.

    A model is shown the conversation only; the rest is for agents that are not models and for repeatable draws.
    """

    mode: Mode
    sample: int
    seed: int
    scenario: Scenario | None = None
    """None in worlds that have no scenarios of ours."""
    task: str = ""
    """Name of what is played there, by which draws differ."""
    gold: tuple[tuple[SolutionCall, ...], ...] | None = None
    """The recorded solution there, for each user message; None: unknown."""
    gold_said: tuple[str, ...] = ()
    """What it says at the end of each turn, as far as that is recorded."""
    entities: tuple[Entity, ...] = ()
    language: str = "en"


class AgentReply(Completion):
    """A completion as the dialect of its model was read."""

    raw: str | None = None
    """The reply as it was written, where calls or reasoning had to be read out of its text."""
    slips: tuple[Slip, ...] = ()
    """What was wrong with its form; `repaired` marks what the message has put right."""
    fault: str | None = None
    """Kind of the slip for which something in it cannot be carried out; such a call is `malformed`."""
    form: str = ""
    """How calls should have been written, in words for the model."""


class Player(Protocol):
    """One agent in one episode."""

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        """The agent's next message: tool calls, or a message to the user, which ends its turn.

        An `AgentReply` says also what was wrong with it; of any other completion nothing was.

        Args:
            conversation: system prompt first, then everything that was said and seen.

        Raises:
            EndpointUnavailable: the model did not answer; infrastructure, not the agent's fault.
            BudgetExhausted: the limits given do not allow the call.
        """
        ...


class Agent(Protocol):
    """Plays any number of episodes side by side."""

    @property
    def kind(self) -> AgentKind:
        """Its name in records."""
        ...

    @property
    def model(self) -> str | None:
        """Name of the model behind it; None when there is none."""
        ...

    @property
    def dialect(self) -> str | None:
        """How its calls are written; None: by the endpoint's own function calling, or there is no model."""
        ...

    def unplayable(self, scenario: Scenario) -> str | None:
        """Why it cannot play a scenario at all, in a few words; None when it can."""
        ...

    def start(self, briefing: Briefing) -> Player:
        """A player for one episode."""
        ...
