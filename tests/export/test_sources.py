"""What is held out from training stays out of exports, and who says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from env.lending import scenario, skeleton
from export.episodes import stored, trajectory

from envscaler.errors import UsageError
from envscaler.export import export_sft
from envscaler.export.sources import library_of
from envscaler.store import LibraryStore, RunStore

IDS = tuple(f"desk-{letter}" for letter in "abcdefghij")


@pytest.fixture
def library(tmp_path: Path) -> LibraryStore:
    store = LibraryStore.create(tmp_path / "L")
    for env_id in IDS:
        environment = skeleton(id=env_id)
        store.write_environment(environment, None, [scenario(environment)])
    store.write_index({})
    return store


def run_in(library: LibraryStore) -> Path:
    return stored(
        library.path / "rollouts" / "run", *(trajectory(id=env_id, env_id=env_id, scenario_id="s") for env_id in IDS)
    )


def test_without_splits_everything_is_exported(library: LibraryStore, tmp_path: Path) -> None:
    report = export_sft(run_in(library), tmp_path / "rows.jsonl")
    assert (report.environments, report.notes) == (10, ())


def test_a_hold_out_is_left_out_and_told(library: LibraryStore, tmp_path: Path) -> None:
    drawn = IDS[:3]
    library.write_splits({"train": IDS[3:], "test": drawn})
    assert len(drawn) == 3
    report = export_sft(run_in(library), tmp_path / "rows.jsonl")
    assert set(report.card.environments) == set(IDS) - set(drawn)
    assert report.dropped == {"held out: test": 3}
    assert report.notes == (f"3 environments of {library.path} held out from training, and left out",)
    assert report.card.held_out == 3


def test_a_split_is_exported_by_its_name(library: LibraryStore, tmp_path: Path) -> None:
    drawn = IDS[:3]
    library.write_splits({"train": IDS[3:], "test": drawn})
    run = run_in(library)
    assert set(export_sft(run, tmp_path / "t.jsonl", split="test").card.environments) == set(drawn)
    late = skeleton(id="desk-late")
    library.write_environment(late, None, [scenario(late)])
    with RunStore(run) as store:
        store.append(trajectory(id="late", env_id="desk-late"))
    report = export_sft(run, tmp_path / "t.jsonl", split="train")
    assert set(report.card.environments) == {*IDS, "desk-late"} - set(drawn)
    assert report.dropped == {"not in split train": 3}


def test_an_unknown_split_is_refused_with_those_there_are(library: LibraryStore, tmp_path: Path) -> None:
    run = run_in(library)
    with pytest.raises(UsageError, match="it has none"):
        export_sft(run, tmp_path / "rows.jsonl", split="dev")
    library.write_splits({"train": IDS[3:], "test": IDS[:3]})
    with pytest.raises(UsageError, match="it has test, train"):
        export_sft(run, tmp_path / "rows.jsonl", split="dev")
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_run_elsewhere_knows_its_library_by_its_record(library: LibraryStore, tmp_path: Path) -> None:
    inside = RunStore(run_in(library))
    found = library_of(inside)
    assert found is not None
    assert found.path == library.path.resolve()
    report = export_sft(stored(tmp_path / "alone", trajectory()), tmp_path / "rows.jsonl")
    assert "is not known" in report.notes[0]
    assert report.kept == 1
    assert json.loads((tmp_path / "rows.jsonl.card.json").read_text())["runs"][0]["library"] is None
