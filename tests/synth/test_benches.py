"""Tests of building in several processes: the same bytes, the same report, and an end for every process."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from synth.conftest import tree
from synth.lending import LendingModel

from envscaler.llm import Budget
from envscaler.models import ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.synth import SynthReport, SynthSettings, run_synth
from envscaler.synth.benches import is_shareable

pytestmark = pytest.mark.anyio

TASKS = (
    "Move the booking of Ana Silva for the tennis court to Friday.",
    "Why is the sky blue?",
    "Cancel the order 1042 and refund the customer.",
    "Approve the travel request of Bo Lind and assign it to the finance team.",
)


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps({"task": text}) + "\n" for text in TASKS), encoding="utf-8")
    return path


async def synth(tasks: Path, library: Path, workers: int) -> SynthReport:
    settings = SynthSettings(tasks=tasks, library=library, rounds=6, scenarios=1, workers=workers)
    async with open_models(ModelSettings()) as models:
        return await run_synth(settings, models, Prompts())


async def test_one_process_and_two_give_the_same_bytes_and_the_same_report(tasks: Path, tmp_path: Path) -> None:
    alone = await synth(tasks, tmp_path / "alone", 1)
    shared = await synth(tasks, tmp_path / "shared", 2)
    assert alone.funnel.solved >= 2
    assert tree(tmp_path / "shared") == tree(tmp_path / "alone")
    assert shared.model_dump(exclude={"library", "record"}) == alone.model_dump(exclude={"library", "record"})


async def test_a_run_in_two_processes_that_is_cut_off_resumes_in_one_to_the_same_bytes(
    tasks: Path, tmp_path: Path
) -> None:
    await synth(tasks, tmp_path / "straight", 2)
    library = tmp_path / "cut"
    run = asyncio.create_task(synth(tasks, library, 2))
    journal = library / ".cache" / "synth.jsonl"
    await asyncio.to_thread(_wait_for_a_unit, journal)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await synth(tasks, library, 1)
    assert tree(library) == tree(tmp_path / "straight")


def _wait_for_a_unit(journal: Path) -> None:
    while not journal.exists() or "unit:" not in journal.read_text(encoding="utf-8"):
        time.sleep(0.05)


async def test_only_work_of_the_embedded_model_without_a_limit_on_calls_is_shared() -> None:
    async with open_models(ModelSettings(), budget=Budget(max_cost=1.0)) as models:
        assert is_shareable(models)
    for limits in (Budget(max_calls=9), Budget(max_tokens=9)):
        async with open_models(ModelSettings(), budget=limits) as models:
            assert not is_shareable(models)
    async with open_models(ModelSettings(), offline=LendingModel()) as models:
        assert not is_shareable(models)
    async with open_models(ModelSettings(model="m", base_url="http://127.0.0.1:9/v1")) as models:
        assert not is_shareable(models)
