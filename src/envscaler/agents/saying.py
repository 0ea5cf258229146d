"""Completions of agents that are no models."""

from __future__ import annotations

from envscaler.agents.agent import AgentKind
from envscaler.llm.chat import Completion
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.trajectory import Usage


def called(agent: AgentKind, call: ToolCall, text: str = "") -> Completion:
    """One tool call, with what is said beside it."""
    return all_called(agent, (call,), text)


def all_called(agent: AgentKind, calls: tuple[ToolCall, ...], text: str = "") -> Completion:
    """Tool calls in one message, with what is said beside them."""
    return Completion(
        message=AssistantMessage(content=text, tool_calls=calls),
        finish_reason="tool_calls",
        usage=Usage(),
        model=agent,
        cost_usd=0.0,
    )


def said(agent: AgentKind, text: str) -> Completion:
    """A message to the user."""
    return Completion(message=AssistantMessage(content=text), usage=Usage(), model=agent, cost_usd=0.0)
