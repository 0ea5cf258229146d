"""Turns of a conversation: the agent that plays a recorded solution, and the simulated user."""

from __future__ import annotations

from envscaler.messages import ToolCall
from envscaler.roles.types import AgentTurnInputs, TextReply, UserTurnInputs


def agent_turn(inputs: AgentTurnInputs) -> tuple[str, ToolCall | None]:
    """What the agent says next: content and, unless it waits or has finished, one tool call."""
    raise NotImplementedError


def user_turn(inputs: UserTurnInputs) -> TextReply:
    """What the user says next: the opening, then facts, then the stop token."""
    raise NotImplementedError
