"""Tests of single stages over a library that is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from synth.conftest import tree
from synth.lending import LendingModel, Variant, check_code

from envscaler.errors import StoreError, UsageError
from envscaler.evidence import Thresholds
from envscaler.models import Models
from envscaler.proof import is_stale
from envscaler.roles.role import Prompts
from envscaler.store import LibraryStore
from envscaler.synth import AssessReport, ScenariosReport, SynthSettings, run_assess, run_scenarios, run_synth
from envscaler.synth.redo import index_of

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


DESK = "kayak-lending-desk"


def edit(library: Path, before: str, after: str) -> None:
    program = library / f"environments/{DESK}/program.py"
    text = program.read_text(encoding="utf-8")
    assert before in text
    program.write_text(text.replace(before, after), encoding="utf-8")


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


async def test_what_ended_early_is_made_anew_only_where_more_is_asked(library: Path, opened: Opened) -> None:
    (first,) = (await reassess(library, LendingModel(), opened, rounds=60, env_id=DESK)).assessed
    assert (first.fresh, first.made) == (True, 30)
    assert first.interval is not None
    assert 0.5 < first.oracle_share < 1
    for more, fresh, made in (
        ({}, False, 30),
        ({"threshold": 0.8}, False, 30),
        ({"threshold": 0.95}, True, 60),
        ({"judge": "all"}, True, 30),
        ({"judge": "auto"}, False, 30),
        ({"all_rounds": True}, True, None),
        ({}, False, None),
    ):
        (again,) = (await reassess(library, LendingModel(), opened, **{"rounds": 60, "env_id": DESK, **more})).assessed
        assert (again.fresh, again.made) == (fresh, made if made != 60 else None), more


async def test_scenarios_are_added_until_there_are_enough(library: Path, opened: Opened) -> None:
    report = await extend(library, LendingModel(), opened)
    assert [(made.present, made.made, made.solved) for made in report.environments] == [(3, 1, 3)] * 3
    ids = [scenario.id for scenario in LibraryStore.open(library).scenarios("kayak-lending-desk")]
    assert ids == [f"kayak-lending-desk-s00{number}" for number in (1, 2, 3)]
    again = LendingModel()
    report = await extend(library, again, opened, per_env=2)
    assert again.calls == 0
    assert report.environments[0].present == 3


async def test_scenarios_that_are_added_have_proofs_and_those_without_are_dropped(
    library: Path, opened: Opened
) -> None:
    store = LibraryStore.open(library)
    weak = Variant(
        write_check=lambda inputs, usual: (
            usual if inputs.position else check_code('return final_state["things"]["T-2"]["status"] == "lent"')
        )
    )
    thresholds = Thresholds(mutation_score=1.0)
    report = await extend(library, weak, opened, env_id=DESK, thresholds=thresholds)
    (row,) = report.environments
    assert (row.present, row.made, row.proved, row.unproved) == (2, 0, 2, 1)
    assert "of the wrong final states are noticed" in row.dropped[0]
    report = await extend(library, weak, opened, env_id=DESK, thresholds=thresholds, keep_unproved=True)
    (row,) = report.environments
    assert (row.present, row.made, row.proved, row.unproved) == (3, 1, 2, 1)
    scenarios, proofs = list(store.scenarios(DESK)), list(store.proofs(DESK))
    assert [proof.scenario_id for proof in proofs] == [scenario.id for scenario in scenarios]
    skeleton = store.read_environment(DESK)
    assert not any(is_stale(proof, skeleton, one) for proof, one in zip(proofs, scenarios, strict=True))


async def test_renewed_scenarios_are_proved_again(library: Path, opened: Opened) -> None:
    edit(library, "There is no member named", "Nobody here is named")
    store = LibraryStore.open(library)
    report = await extend(library, LendingModel(), opened, per_env=None, renew=True, env_id=DESK)
    assert [row.proved for row in report.environments] == [2]
    skeleton = store.read_environment(DESK)
    proofs = zip(store.proofs(DESK), store.scenarios(DESK), strict=True)
    assert not any(is_stale(proof, skeleton, scenario) for proof, scenario in proofs)


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


async def test_scenarios_that_an_edit_does_not_touch_are_renewed_without_a_model(library: Path, opened: Opened) -> None:
    store = LibraryStore.open(library)
    before = list(store.scenarios(DESK))
    edit(library, "There is no member named", "Nobody here is named")
    untouched = LendingModel()
    report = await extend(library, untouched, opened, per_env=2, env_id=DESK)
    assert [(row.stale, row.renewed) for row in report.environments] == [(2, 0)]
    assert list(store.scenarios(DESK)) == before
    report = await extend(library, untouched, opened, per_env=None, renew=True)
    assert untouched.calls == 0
    assert {row.env_id: (row.present, row.made, row.renewed, row.stale) for row in report.environments}[DESK] == (
        *(2, 0, 2, 0),
    )
    digest = store.read_environment(DESK).digest
    assert list(store.scenarios(DESK)) == [one.model_copy(update={"env_digest": digest}) for one in before]
    tree_now = tree(library)
    await extend(library, untouched, opened, per_env=None, renew=True)
    assert tree(library) == tree_now


async def test_a_scenario_that_is_no_longer_solved_is_written_anew_under_its_id(library: Path, opened: Opened) -> None:
    store = LibraryStore.open(library)
    before = list(store.scenarios(DESK))
    # What its checks look for is no longer so, though every call of the solution still succeeds.
    broken = before[0].checks[0].model_copy(update={"source": "def check_func(final_state):\n    return False\n"})
    store.replace_scenarios(DESK, [before[0].model_copy(update={"checks": (broken,)}), before[1]])
    edit(library, "There is no member named", "Nobody here is named")
    report = await extend(library, LendingModel(), opened, per_env=None, renew=True, env_id=DESK)
    (row,) = report.environments
    assert (row.present, row.made, row.renewed, row.stale, row.solved) == (2, 1, 1, 0, 2)
    after = list(store.scenarios(DESK))
    assert [one.id for one in after] == [one.id for one in before]
    assert after[0].checks != (broken,)


async def test_what_cannot_be_renewed_stays_and_is_told(library: Path, opened: Opened) -> None:
    store = LibraryStore.open(library)
    first, second = store.scenarios(DESK)
    holds = first.checks[0].model_copy(update={"source": "def check_func(final_state):\n    return True\n"})
    imported = {"released": {"fields": {}}, "solution": None}
    fits = first.model_copy(update={**imported, "id": "task_1"})
    unfit = second.model_copy(update={**imported, "id": "task_2", "checks": (holds,)})
    store.replace_scenarios(DESK, [fits, unfit])
    edit(library, "There is no member named", "Nobody here is named")
    model = LendingModel()
    report = await extend(library, model, opened, per_env=None, renew=True, env_id=DESK)
    (row,) = report.environments
    assert model.calls == 0
    assert (row.present, row.renewed, row.stale) == (2, 1, 1)
    assert row.dropped == ("task_2 stays stale: all its checks hold before anything is done",)
    assert [one.id for one in store.scenarios(DESK)] == ["task_1", "task_2"]


async def test_a_program_that_no_longer_starts_leaves_every_scenario_as_it_is(library: Path, opened: Opened) -> None:
    before = list(LibraryStore.open(library).scenarios(DESK))
    edit(
        library,
        "    def __init__(self, init_config",
        "    raise ValueError('no')\n\n    def __init__(self, init_config",
    )
    report = await extend(library, LendingModel(), opened, per_env=None, renew=True, env_id=DESK)
    (row,) = report.environments
    assert (row.present, row.stale) == (2, 2)
    assert row.dropped
    assert list(LibraryStore.open(library).scenarios(DESK)) == before


@pytest.mark.parametrize(
    ("name", "index"), [("d-s001", 0), ("d-s1000", 999), ("d-s000", None), ("d-s1", None), ("task_1", None)]
)
def test_only_ids_that_were_given_here_have_an_index(name: str, index: int | None) -> None:
    assert index_of(name, "d") == index
