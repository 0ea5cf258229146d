"""`Contents`: what a benchmark holds, as texts that a library can be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envscaler.bench.crew import Crew
from envscaler.record import JsonSchema, Record

_CONTENTS_S = 120.0


class OfferedTool(Record):
    """One tool of a benchmark's environment."""

    name: str
    description: str
    parameters: JsonSchema


class OfferedEnvironment(Record):
    """One environment of a benchmark."""

    name: str
    about: str = ""
    """What the benchmark says of it; empty where it says nothing."""
    tools: tuple[OfferedTool, ...]


class OfferedTask(Record):
    """What is said in one task."""

    id: str
    said: tuple[str, ...]
    """The user's messages, or what a simulated user is told to want."""


class Contents(Record):
    """Everything of a benchmark that training data can resemble."""

    environments: tuple[OfferedEnvironment, ...]
    tasks: tuple[OfferedTask, ...]


async def contents_of(crew: Crew) -> Contents:
    """What a benchmark holds, as its worker tells it.

    Raises:
        SandboxError: if it cannot be told.
    """
    session = await crew.open()
    try:
        told: Mapping[str, Any] = await session.ask("contents", limit_s=_CONTENTS_S)
    finally:
        await session.close()
    return Contents.model_validate(told)
