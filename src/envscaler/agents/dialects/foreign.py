"""Finds calls in the form of another dialect than the one that a model was asked to use."""

from __future__ import annotations

from collections.abc import Callable

from envscaler.agents.dialects.marks import marked_calls, python_tagged_calls
from envscaler.agents.dialects.react_form import react_calls
from envscaler.agents.dialects.shape import Found, Tools
from envscaler.agents.dialects.tags import tagged_calls

_FINDERS: tuple[tuple[frozenset[str], Callable[[str, Tools], list[Found]]], ...] = (
    (frozenset({"hermes", "qwen3.5"}), tagged_calls),
    (frozenset({"mistral"}), marked_calls),
    (frozenset({"llama"}), python_tagged_calls),
    (frozenset({"react"}), react_calls),
)


def foreign_calls(text: str, tools: Tools, own: str) -> list[Found]:
    """The calls in the first other form in which there are any that name a tool."""
    for owners, finder in _FINDERS:
        if own in owners:
            continue
        found = finder(text, tools)
        if any(attempt.name in tools for stretch in found for attempt in stretch.attempts):
            for stretch in found:
                for attempt in stretch.attempts:
                    attempt.slips.insert(0, "other_dialect")
            return found
    return []
