"""Scenarios that a run writes and cannot prove: dropped and counted, or kept where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synth.conftest import settings_of, synth, tree
from synth.lending import LendingModel, check_code

from envscaler.evidence import Thresholds
from envscaler.models import Models
from envscaler.roles import types as t
from envscaler.store import LibraryStore

Opened = Callable[[LendingModel], Models]

pytestmark = pytest.mark.anyio


class Careless(LendingModel):
    """Its first scenario of each desk has checks that see half of what is to be done."""

    def write_check(self, inputs: t.WriteCheckInputs) -> Any:
        if inputs.index == 0 and inputs.position == 0:
            return check_code('return final_state["things"]["T-2"]["status"] == "lent"')
        return super().write_check(inputs)


HIGH = Thresholds(mutation_score=1.0)


async def test_scenarios_that_are_not_proved_are_dropped_and_counted(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    report = await synth(opened, Careless(), settings_of(task_file, tmp_path / "library", thresholds=HIGH))
    funnel = report.funnel
    assert (funnel.written, funnel.scenarios, funnel.solved, funnel.proved) == (6, 3, 3, 3)
    dropped = {one.reason: one for one in report.dropped}["scenario without proof"]
    assert (dropped.stage, dropped.count) == ("scenarios", 3)
    assert "bicycle-lending-desk-s001: " in dropped.examples[0]
    assert "of the wrong final states are noticed, 100% are asked for" in dropped.examples[0]
    store = LibraryStore.open(tmp_path / "library")
    assert [one.id[-4:] for one in store.scenarios("kayak-lending-desk")] == ["s002"]
    assert [one.scenario_id[-4:] for one in store.proofs("kayak-lending-desk")] == ["s002"]
    before = tree(tmp_path / "library")
    again = Careless()
    second = await synth(opened, again, settings_of(task_file, tmp_path / "library", thresholds=HIGH))
    assert again.calls == 0
    assert tree(tmp_path / "library") == before
    assert second.funnel == funnel


async def test_a_kill_after_an_environment_with_dropped_scenarios_is_mended(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    settings = settings_of(task_file, tmp_path / "library", thresholds=HIGH)
    first = await synth(opened, Careless(), settings)
    before = tree(tmp_path / "library")
    journal = tmp_path / "library/.cache/synth.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"unit:' not in line))
    again = Careless()
    second = await synth(opened, again, settings)
    assert again.calls == 0
    assert second.funnel == first.funnel
    assert tree(tmp_path / "library") == before


async def test_scenarios_without_a_good_proof_are_kept_where_that_is_asked_for(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    library = tmp_path / "library"
    await synth(opened, Careless(), settings_of(task_file, library, thresholds=HIGH))
    report = await synth(opened, Careless(), settings_of(task_file, library, thresholds=HIGH, keep_unproved=True))
    funnel = report.funnel
    assert (funnel.written, funnel.scenarios, funnel.solved, funnel.proved) == (6, 6, 6, 3)
    assert {one.reason: one.count for one in report.dropped}["scenario without proof"] == 3
    store = LibraryStore.open(library)
    scores = {proof.scenario_id[-4:]: proof.mutation_score for proof in store.proofs("kayak-lending-desk")}
    assert scores["s002"] == 1.0
    assert scores["s001"] is not None
    assert scores["s001"] < 1.0
    other = Careless()
    await synth(opened, other, settings_of(task_file, library, thresholds=HIGH, keep_unproved=True))
    assert other.calls == 0
