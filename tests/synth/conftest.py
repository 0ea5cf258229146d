"""Fixtures of the synthesis tests: a task file, and a run with the fake model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from synth.lending import LendingModel

from envscaler.models import Models, ModelSettings, open_models

TASKS = (
    "Lend a bicycle to Ana, please.",
    "What is the capital of France?",
    "Lend a kayak to whoever comes first.",
    "Lend a bicycle to Bo until Friday.",
    "Lend an umbrella to Chi.",
)


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps({"task": text}) + "\n" for text in TASKS), encoding="utf-8")
    return path


@pytest.fixture
def model() -> LendingModel:
    return LendingModel()


@pytest.fixture
def opened() -> Callable[[LendingModel], Models]:
    return lambda model: open_models(ModelSettings(), offline=model)


def tree(library: Path) -> dict[str, bytes]:
    """The bytes of everything in a library that has to be the same after every run of the same command."""
    paths = [library / "library.json", *sorted((library / "environments").rglob("*"))]
    return {str(path.relative_to(library)): path.read_bytes() for path in paths if path.is_file()}
