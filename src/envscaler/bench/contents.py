"""`Contents`: what a benchmark holds, as texts that a library can be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envscaler.bench.installation import Installation
from envscaler.bench.tasks import BenchTask
from envscaler.engine import bounded_map
from envscaler.record import JsonSchema, Record

_CONTENTS_S = 120.0
_SIDE_BY_SIDE = 4


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


async def contents_of(installation: Installation) -> Contents:
    """What a benchmark holds: as its worker tells it, else as its tasks begin.

    Raises:
        SandboxError: if it cannot be told.
    """
    async with installation.crew() as crew:
        session = await crew.open()
        try:
            if (await session.ask("describe")).get("contents"):
                return Contents.model_validate(await session.ask("contents", limit_s=_CONTENTS_S))
        finally:
            await session.close()
        options = installation.benchmark.chosen({})
        tasks = [task for task in installation.installed.tasks if task.fits(options)]

        async def begun(task: BenchTask) -> Mapping[str, Any]:
            session = await crew.open()
            try:
                return await session.ask("open", limit_s=_CONTENTS_S, task=task.id, options=options)
            finally:
                await session.close()

        told = [one async for one in bounded_map(begun, tasks, limit=_SIDE_BY_SIDE)]
    tools: dict[str, dict[str, OfferedTool]] = {}
    for task, one in zip(tasks, told, strict=True):
        for tool in one["tools"]:
            tools.setdefault(task.split, {}).setdefault(tool["name"], OfferedTool.model_validate(tool))
    return Contents(
        environments=tuple(OfferedEnvironment(name=name, tools=tuple(own.values())) for name, own in tools.items()),
        tasks=tuple(
            OfferedTask(id=task.id, said=(one["user"] if one["user"] is not None else one["instructions"]["text"],))
            for task, one in zip(tasks, told, strict=True)
        ),
    )
