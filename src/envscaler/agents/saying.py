"""Completions of agents that are no models."""

from __future__ import annotations

from envscaler.agents.agent import AgentKind
from envscaler.llm.chat import Completion
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.trajectory import Usage


def called(agent: AgentKind, call: ToolCall, text: str = "") -> Completion:
    """One tool call, with what is said beside it."""
    return Completion(
        message=AssistantMessage(content=text, tool_calls=(call,)),
        finish_reason="tool_calls",
        usage=Usage(),
        model=agent,
        cost_usd=0.0,
    )


def said(agent: AgentKind, text: str) -> Completion:
    """A message to the user."""
    return Completion(message=AssistantMessage(content=text), usage=Usage(), model=agent, cost_usd=0.0)
