"""Libraries filtered: each condition, what goes along, and reasons for what does not."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from env.lending import SOURCE, scenario, skeleton

from envscaler.assessment import Assessment, TestCase
from envscaler.curate import Selection, filter_library
from envscaler.errors import StoreError, UsageError
from envscaler.evidence import AuditSummary, EnvironmentAudit
from envscaler.messages import ToolCall
from envscaler.proof.run import run_prove
from envscaler.scenario import Calibration, Difficulty
from envscaler.skeleton import Origin
from envscaler.store import LibraryStore, split_of
from envscaler.synth.curriculum import Band, draw_curriculum

EASY = Difficulty(calls=2)
HARD = Difficulty(calls=9, entities=4, rules=6, look_ups=5, forbidden=1)


def rate(solved: int, samples: int = 4) -> Calibration:
    return Calibration(model="m", samples=samples, solved=solved)


@pytest.fixture
def library(tmp_path: Path) -> LibraryStore:
    """A desk of four scenarios, never to always solved, and one of another language without any."""
    store = LibraryStore.create(tmp_path / "library")
    desk = skeleton(id="desk")
    verdicts = TestCase(
        round=0, call=ToolCall(name="find_books"), case="positive", before="", after="", verdict="pass", reason="?"
    )
    assessment = Assessment(env_id="desk", env_digest=desk.digest, rounds=1, cases=(verdicts,))
    scenarios = [
        scenario(desk, n, task=f"Task {n}.", difficulty=HARD if n > 2 else EASY, calibration=rate(n - 1, 3))
        for n in (1, 2, 3, 4)
    ]
    store.write_environment(desk, assessment, scenarios)
    other = SOURCE.replace("no copy of", "not a copy of")
    store.write_environment(skeleton(other, id="schalter", origin=Origin(language="zh")))
    store.write_index({"made": "here"})
    store.write_splits({"train": ["desk"], "test": ["schalter"]})
    return store


def kept(library: LibraryStore, tmp_path: Path, **conditions: object) -> dict[str, list[str]]:
    """Ids of what is in the filtered library, the end of those of scenarios only."""
    filter_library(library.path, tmp_path / "filtered", Selection.model_validate(conditions))
    if not (tmp_path / "filtered").exists():
        return {}
    store = LibraryStore.open(tmp_path / "filtered")
    return {env_id: [one.id[-1] for one in store.scenarios(env_id)] for env_id in store.env_ids()}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, {"desk": ["1", "2", "3", "4"], "schalter": []}),
        ({"env_ids": ["de*"]}, {"desk": ["1", "2", "3", "4"]}),
        ({"splits": ["test"]}, {"schalter": []}),
        ({"languages": ["en"]}, {"desk": ["1", "2", "3", "4"]}),
        ({"accepted": True}, {"desk": ["1", "2", "3", "4"]}),
        ({"levels": ["hard"]}, {"desk": ["3", "4"]}),
        ({"band": {"low": 0.0, "high": 1.0}}, {"desk": ["2", "3"]}),
        ({"band": {"low": 0.5, "high": 1.0}}, {"desk": ["3"]}),
        ({"band": {"low": 0.5, "high": 1.0, "extremes": True}}, {"desk": ["3", "4"]}),
        ({"levels": ["easy"], "band": {"low": 0.0, "high": 1.0}}, {"desk": ["2"]}),
        ({"proved": True}, {}),
    ],
)
def test_what_fits_every_condition_is_taken(
    conditions: dict[str, object], expected: dict[str, list[str]], library: LibraryStore, tmp_path: Path
) -> None:
    assert kept(library, tmp_path, **conditions) == expected


def test_assessment_proofs_and_split_go_along(library: LibraryStore, tmp_path: Path) -> None:
    anyio.run(lambda: run_prove(library.path))
    report = filter_library(library.path, tmp_path / "f", Selection(levels=("hard",)))
    filtered = LibraryStore.open(tmp_path / "f")
    assert filtered.read_assessment("desk") == library.read_assessment("desk")
    assert [proof.scenario_id[-1] for proof in filtered.proofs("desk")] == ["3", "4"]
    assert split_of(filtered, "desk") == "train"
    assert filtered.read_index().provenance["filtered_from"]["library"] == "library"
    assert report.dropped_scenarios == {"of difficulty easy": 2}
    assert report.dropped_environments == {"none of its scenarios fits": 1}


def test_an_audit_goes_along_where_all_scenarios_do(library: LibraryStore, tmp_path: Path) -> None:
    desk = library.read_environment("desk")
    audit = EnvironmentAudit(
        env_id="desk",
        env_digest=desk.digest,
        scenarios_digest="",
        method=1,
        summary=AuditSummary(),
        grades={"determinism": True, "floor_gap": False},
    )
    library.write_audit(audit)
    filter_library(library.path, tmp_path / "whole", Selection(grades=("determinism",)))
    assert LibraryStore.open(tmp_path / "whole").read_audit("desk") == audit
    filter_library(library.path, tmp_path / "part", Selection(levels=("easy",)))
    assert LibraryStore.open(tmp_path / "part").read_audit("desk") is None
    report = filter_library(library.path, tmp_path / "none", Selection(grades=("floor_gap",)))
    assert report.dropped_environments == {"its audit does not show floor_gap": 1, "not audited": 1}
    assert not (tmp_path / "none").exists()
    with pytest.raises(UsageError, match="--graded is 'beauty'; give one of determinism, floor_gap"):
        filter_library(library.path, tmp_path / "x", Selection(grades=("beauty",)))


def test_a_curriculum_names_the_scenarios_until_they_are_edited(library: LibraryStore, tmp_path: Path) -> None:
    curriculum = draw_curriculum(library, Band(), model="m")
    assert [lesson.scenario_id[-1] for lesson in curriculum.scenarios] == ["3", "2"]
    assert draw_curriculum(library, Band(), model="another").scenarios == ()
    assert kept(library, tmp_path, curriculum=curriculum.model_dump()) == {"desk": ["2", "3"]}
    edited = [
        one.model_copy(update={"task": "Another one."}) if one.id.endswith("3") else one
        for one in library.scenarios("desk")
    ]
    library.replace_scenarios("desk", edited)
    report = filter_library(library.path, tmp_path / "f", Selection(curriculum=curriculum))
    assert report.dropped_scenarios == {"edited since": 1, "not in the curriculum": 2}


def test_a_curriculum_holds_nothing_that_is_held_out(library: LibraryStore) -> None:
    library.write_splits({"test": ["desk"]})
    assert draw_curriculum(library, Band(), model="m").scenarios == ()
    assert len(draw_curriculum(library, Band(), model="m", held_out=True).scenarios) == 2


def test_the_same_command_goes_on_and_another_one_is_refused(library: LibraryStore, tmp_path: Path) -> None:
    target = tmp_path / "f"
    filter_library(library.path, target, Selection(levels=("hard",)))
    store = LibraryStore.open(target)
    # A kill leaves the mark.
    (store.cache_dir / "unfinished").touch()
    store.replace_scenarios("desk", [])
    filter_library(library.path, target, Selection(levels=("hard",)))
    assert len(list(store.scenarios("desk"))) == 2
    assert not (store.cache_dir / "unfinished").exists()
    with pytest.raises(StoreError, match="made otherwise"):
        filter_library(library.path, target, Selection(levels=("easy",)))


def test_what_was_done_with_a_finished_library_is_not_undone(library: LibraryStore, tmp_path: Path) -> None:
    filter_library(library.path, tmp_path / "f", Selection(levels=("hard",)))
    store = LibraryStore.open(tmp_path / "f")
    mine = [one.model_copy(update={"task": "Mine."}) for one in store.scenarios("desk")]
    store.replace_scenarios("desk", mine)
    filter_library(library.path, tmp_path / "f", Selection(levels=("hard",)))
    assert list(store.scenarios("desk")) == mine


def test_names_that_the_library_does_not_know_are_refused(library: LibraryStore, tmp_path: Path) -> None:
    for conditions, text in (
        ({"env_ids": ("hotel-*",)}, "no environment 'hotel-\\*'"),
        ({"splits": ("dev",)}, "no split 'dev'; it has test, train"),
        ({"grades": ("determinism",)}, "has not been audited"),
    ):
        with pytest.raises(UsageError, match=text):
            filter_library(library.path, tmp_path / "f", Selection.model_validate(conditions))


@pytest.mark.parametrize("text", ["", "0.2", "0.8:0.2", "0:2", "a:b", "1.2.3:1", "-1:1"])
def test_a_band_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--band"):
        Band.parse(text)
