"""The package's own way to what a published check is judged on: imported, reset, in the sandbox."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from envscaler.env import open_library
from envscaler.ingest import ReleasedFiles, import_released
from envscaler.scenario import Scenario
from envscaler.state import State


@dataclass(frozen=True, slots=True)
class Reset:
    """A scenario and all attributes of its environment right after reset."""

    scenario: Scenario
    state: State


def resets(folder: Path, library: Path) -> dict[str, Reset]:
    """Every scenario of a published folder by its id; `library` is made of it."""
    files = ReleasedFiles(folder / "environments.json", folder / "scenarios.json")
    report = asyncio.run(import_released(files, library, check=False))
    assert report.skipped == ()
    opened = open_library(library)
    found: dict[str, Reset] = {}
    for env_id in opened.env_ids:
        for scenario in opened.scenarios(env_id):
            with opened.make(env_id, scenario.id) as env:
                env.reset()
                found[scenario.id] = Reset(scenario, env.state())
    return found
