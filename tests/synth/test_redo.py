"""Tests of single stages over a library that is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from synth.conftest import tree
from synth.lending import LendingModel

from envscaler.errors import StoreError, UsageError
from envscaler.models import Models
from envscaler.roles.role import Prompts
from envscaler.store import LibraryStore
from envscaler.synth import AssessReport, ScenariosReport, SynthSettings, run_assess, run_scenarios, run_synth

Opened = Callable[[LendingModel], Models]

pytestmark = pytest.mark.anyio


@pytest.fixture
async def library(task_file: Path, tmp_path: Path, opened: Opened) -> Path:
    async with opened(LendingModel()) as models:
        path = tmp_path / "library"
        settings = SynthSettings(
            tasks=task_file, library=path, rounds=8, scenarios=2, similarity=0.97, keep_equal_structures=True
        )
        await run_synth(settings, models, Prompts())
        return path


async def reassess(library: Path, model: LendingModel, opened: Opened, **more: object) -> AssessReport:
    async with opened(model) as models:
        return await run_assess(library, models, Prompts(), **{"rounds": 8, **more})  # type: ignore[arg-type]


async def extend(library: Path, model: LendingModel, opened: Opened, **more: object) -> ScenariosReport:
    async with opened(model) as models:
        return await run_scenarios(library, models, Prompts(), **{"per_env": 3, **more})  # type: ignore[arg-type]


async def test_a_valid_assessment_is_kept(library: Path, opened: Opened) -> None:
    before = tree(library)
    model = LendingModel()
    report = await reassess(library, model, opened)
    assert model.calls == 0
    assert [(one.accepted, one.fresh) for one in report.assessed] == [(True, False)] * 3
    assert tree(library) == before


async def test_assessing_anew_gives_what_synthesis_gave(library: Path, opened: Opened) -> None:
    before = tree(library)
    report = await reassess(library, LendingModel(), opened, force=True)
    assert all(one.fresh for one in report.assessed)
    assert tree(library) == before


async def test_a_hand_edit_makes_an_assessment_stale(library: Path, opened: Opened) -> None:
    program = library / "environments/kayak-lending-desk/program.py"
    program.write_text(program.read_text().replace("if status", "if not status or status"), encoding="utf-8")
    model = LendingModel()
    report = await reassess(library, model, opened)
    assert [one.env_id for one in report.assessed if one.fresh] == ["kayak-lending-desk"]
    assert model.asked["test_call"] == 8
    store = LibraryStore.open(library)
    assessment = store.read_assessment("kayak-lending-desk")
    assert assessment is not None
    assert assessment.env_digest == store.read_environment("kayak-lending-desk").digest


async def test_another_threshold_asks_no_model(library: Path, opened: Opened) -> None:
    model = LendingModel()
    report = await reassess(library, model, opened, threshold=0.5, by="not_fail", env_id="kayak-lending-desk")
    assert model.calls == 0
    assert len(report.assessed) == 1
    assessment = LibraryStore.open(library).read_assessment("kayak-lending-desk")
    assert assessment is not None
    assert (assessment.threshold, assessment.by) == (0.5, "not_fail")


async def test_scenarios_are_added_until_there_are_enough(library: Path, opened: Opened) -> None:
    report = await extend(library, LendingModel(), opened)
    assert [(made.present, made.made, made.solved) for made in report.environments] == [(3, 1, 3)] * 3
    ids = [scenario.id for scenario in LibraryStore.open(library).scenarios("kayak-lending-desk")]
    assert ids == [f"kayak-lending-desk-s00{number}" for number in (1, 2, 3)]
    again = LendingModel()
    report = await extend(library, again, opened, per_env=2)
    assert again.calls == 0
    assert report.environments[0].present == 3


async def test_a_scenario_that_was_removed_is_made_again(library: Path, opened: Opened) -> None:
    store = LibraryStore.open(library)
    before = tree(library)
    store.replace_scenarios("kayak-lending-desk", list(store.scenarios("kayak-lending-desk"))[:1])
    await extend(library, LendingModel(), opened, per_env=2)
    assert tree(library) == before


async def test_rejected_environments_get_no_scenarios(library: Path, opened: Opened) -> None:
    await reassess(library, LendingModel(), opened, threshold=1.0)
    store = LibraryStore.open(library)
    assessment = store.read_assessment("kayak-lending-desk")
    assert assessment is not None
    case = assessment.cases[0].model_copy(update={"verdict": "fail"})
    store.write_assessment(assessment.model_copy(update={"cases": (case, *assessment.cases[1:])}))
    report = await extend(library, LendingModel(), opened)
    assert report.skipped == ("kayak-lending-desk: its assessment rejects it",)
    assert len(report.environments) == 2


async def test_wrong_use_is_said_in_a_sentence(library: Path, tmp_path: Path, opened: Opened) -> None:
    with pytest.raises(StoreError, match="did you mean 'kayak-lending-desk'"):
        await reassess(library, LendingModel(), opened, env_id="kayak-lending-des")
    with pytest.raises(UsageError, match="from 1 on"):
        await extend(library, LendingModel(), opened, per_env=0)
    with pytest.raises(StoreError, match="no such library"):
        await extend(tmp_path / "nowhere", LendingModel(), opened)
    LibraryStore.create(tmp_path / "empty")
    with pytest.raises(UsageError, match="no environments yet"):
        await reassess(tmp_path / "empty", LendingModel(), opened)
