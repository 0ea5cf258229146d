"""Fixtures of the synthesis tests: a task file, and a run with the fake model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synth.lending import LendingModel

from envscaler.models import Models, ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.sandbox import Sandbox
from envscaler.skeleton import EnvDescription, EnvSkeleton
from envscaler.synth import SynthReport, SynthSettings, run_synth
from envscaler.synth.asking import Asking
from envscaler.synth.design import design
from envscaler.synth.programming import program

TASKS = (
    "Lend a bicycle to Ana, please.",
    "What is the capital of France?",
    "Lend a kayak to whoever comes first.",
    "Lend a bicycle to Bo until Friday.",
    "Lend an umbrella to Chi.",
)


def write_tasks(path: Path) -> None:
    path.write_text("".join(json.dumps({"task": text}) + "\n" for text in TASKS), encoding="utf-8")


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    write_tasks(path)
    return path


@pytest.fixture
def model() -> LendingModel:
    return LendingModel()


@pytest.fixture
def opened() -> Callable[[LendingModel], Models]:
    return lambda model: open_models(ModelSettings(), offline=model)


@pytest.fixture
async def skeleton(opened: Callable[[LendingModel], Models]) -> EnvSkeleton:
    """The bicycle desk, as synthesis makes it."""
    description = EnvDescription(summary="Bicycle lending desk", introduction="It keeps a card for every bicycle.")
    async with opened(LendingModel()) as models, Sandbox() as sandbox:
        asking = Asking(models, Prompts(), 1)
        made = await design(description, (), "en", asking)
        programmed = await program(made, seed=1, asking=asking, sandbox=sandbox)
    return EnvSkeleton(
        id="bicycle-lending-desk",
        description=description,
        entities=made.entities,
        rules=programmed.rules,
        tools=programmed.tools,
        class_name=programmed.class_name,
        source=programmed.source,
    )


def tree(library: Path) -> dict[str, bytes]:
    """The bytes of everything in a library that has to be the same after every run of the same command."""
    paths = [library / "library.json", *sorted((library / "environments").rglob("*"))]
    return {str(path.relative_to(library)): path.read_bytes() for path in paths if path.is_file()}


def settings_of(task_file: Path, library: Path, **more: Any) -> SynthSettings:
    # The desks of the fake model differ in what they lend and in nothing else.
    fixed = {"rounds": 8, "scenarios": 2, "similarity": 0.97, "keep_equal_structures": True}
    fixed["scaffold"] = "whole"
    return SynthSettings(tasks=task_file, library=library, **{**fixed, **more})


async def synth(opened: Callable[[LendingModel], Models], model: LendingModel, settings: SynthSettings) -> SynthReport:
    async with opened(model) as models:
        return await run_synth(settings, models, Prompts())
