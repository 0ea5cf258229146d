"""Libraries merged: every program and scenario once, ids that were taken, runs, and what a kill left on the way."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from env.lending import SOURCE, scenario, skeleton

from envscaler.curate import merge_libraries, split_library
from envscaler.env import open_library
from envscaler.errors import StoreError, UsageError
from envscaler.proof import is_stale
from envscaler.proof.run import run_prove
from envscaler.rollout import RolloutSettings, RunRecord, run_rollout
from envscaler.store import LibraryStore, held_out, split_of

OTHER = SOURCE.replace("no copy of", "not a single copy of")


def make(
    path: Path, source: str = SOURCE, env_id: str = "desk", tasks: tuple[str, ...] = ("Lend Emma to Ann.",)
) -> Path:
    store = LibraryStore.create(path)
    made = skeleton(source, id=env_id)
    store.write_environment(made, None, [scenario(made, n, task=task) for n, task in enumerate(tasks, start=1)])
    store.write_index({"made": path.name})
    return path


def files(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and ".cache" not in file.parts and file.name != ".lock"
    }


def test_the_same_program_is_there_once_with_the_scenarios_of_both(tmp_path: Path) -> None:
    a = make(tmp_path / "a", tasks=("One.", "Two."))
    b = make(tmp_path / "b", env_id="counter", tasks=("Two.", "Three."))
    report = merge_libraries([a, b], tmp_path / "c")
    merged = LibraryStore.open(tmp_path / "c")
    assert merged.env_ids() == ("desk",)
    assert [(one.id, one.task) for one in merged.scenarios("desk")] == [
        ("desk-s001", "One."),
        ("desk-s002", "Two."),
        ("desk-s003", "Three."),
    ]
    assert (report.same_environments, report.same_scenarios, report.renamed_scenarios) == (1, 1, 1)
    assert merged.read_index().scenarios == 3


def test_another_program_of_the_same_id_gets_another_id(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", OTHER)
    report = merge_libraries([a, b], tmp_path / "c")
    merged = LibraryStore.open(tmp_path / "c")
    assert merged.env_ids() == ("desk", "desk-2")
    assert report.renamed == {"b: desk": "desk-2"}
    assert [one.id for one in merged.scenarios("desk-2")] == ["desk-2-s001"]
    assert merged.read_environment("desk-2").source == OTHER


def test_an_id_that_a_later_library_owns_is_given_to_nobody_else(tmp_path: Path) -> None:
    third = SOURCE.replace("no copy of", "no more of")
    libraries = [make(tmp_path / "a"), make(tmp_path / "b", OTHER), make(tmp_path / "c", third, env_id="desk-2")]
    merge_libraries(libraries, tmp_path / "d")
    merged = LibraryStore.open(tmp_path / "d")
    assert merged.env_ids() == ("desk", "desk-2", "desk-3")
    assert merged.read_environment("desk-2").source == third


def test_proofs_hold_for_the_scenarios_under_their_new_ids(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", OTHER)
    for library in (a, b):
        anyio.run(lambda library=library: run_prove(library))
    merge_libraries([a, b], tmp_path / "c")
    merged = LibraryStore.open(tmp_path / "c")
    for env_id in ("desk", "desk-2"):
        (proof,) = merged.proofs(env_id)
        (one,) = merged.scenarios(env_id)
        assert (proof.env_id, proof.scenario_id) == (env_id, one.id)
        assert proof.solved
        assert not is_stale(proof, merged.read_environment(env_id), one)


def play(path: Path, samples: int = 1) -> None:
    async def played() -> None:
        with open_library(path) as library:
            await run_rollout(library, RolloutSettings(agent="oracle", samples=samples))

    anyio.run(played)


def test_runs_of_the_same_settings_become_one_that_can_be_resumed(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a", tasks=("One.", "Two.")), make(tmp_path / "b", OTHER)
    play(a)
    play(b)
    report = merge_libraries([a, b], tmp_path / "c", runs=True)
    merged = LibraryStore.open(tmp_path / "c")
    (run_id,) = merged.rollouts()
    record = merged.run(run_id).read_run(RunRecord)
    assert record is not None
    assert (report.runs, report.episodes, record.planned, record.status) == (1, 3, 3, "complete")
    assert record.scores.total.solved_rate == 1.0
    assert {(one.env_id, one.scenario_id) for one in merged.run(run_id).trajectories()} == {
        ("desk", "desk-s001"),
        ("desk", "desk-s002"),
        ("desk-2", "desk-2-s001"),
    }
    assert len({one.id for one in merged.run(run_id).trajectories()}) == 3
    with open_library(tmp_path / "c") as library:
        again = anyio.run(lambda: run_rollout(library, RolloutSettings(agent="oracle")))
    assert (again.played, again.resumed) == (0, 3)


def test_the_same_episode_of_two_libraries_is_there_once(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", tasks=("Lend Emma to Ann.", "Two."))
    play(a)
    play(b)
    report = merge_libraries([a, b], tmp_path / "c", runs=True)
    merged = LibraryStore.open(tmp_path / "c")
    record = merged.run(merged.rollouts()[0]).read_run(RunRecord)
    assert record is not None
    assert (report.episodes, record.planned) == (2, 2)


def test_runs_stay_where_they_are_unless_they_are_asked_for(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", OTHER)
    play(a)
    merge_libraries([a, b], tmp_path / "c")
    assert LibraryStore.open(tmp_path / "c").rollouts() == ()


def test_what_one_library_holds_out_is_held_out(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", env_id="counter")
    LibraryStore.open(a).write_splits({"train": ["desk"]})
    LibraryStore.open(b).write_splits({"test": ["counter"]})
    report = merge_libraries([a, b], tmp_path / "c")
    merged = LibraryStore.open(tmp_path / "c")
    assert report.held_out == ("desk",)
    assert held_out(merged) == {"desk"}
    assert [one.split for one in merged.scenarios("desk")] == ["test"]


def test_the_same_command_writes_the_same_bytes_and_mends_what_a_kill_left(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", OTHER)
    play(a)
    merge_libraries([a, b], tmp_path / "c", runs=True)
    whole = files(tmp_path / "c")
    merged = LibraryStore.open(tmp_path / "c")
    merged.remove_environment("desk-2")
    run = merged.run(merged.rollouts()[0]).path
    (run / "run.json").unlink()
    merge_libraries([a, b], tmp_path / "c", runs=True)
    assert files(tmp_path / "c") == whole
    merge_libraries([a, b], tmp_path / "d", runs=True)
    here, there = files(tmp_path / "d"), {name: text for name, text in whole.items() if not name.endswith("run.json")}
    assert {name: text for name, text in here.items() if not name.endswith("run.json")} == there


def test_a_library_without_anything_may_be_what_a_kill_left(tmp_path: Path) -> None:
    LibraryStore.create(tmp_path / "c")
    report = merge_libraries([make(tmp_path / "a"), make(tmp_path / "b", OTHER)], tmp_path / "c")
    assert (report.environments, LibraryStore.open(tmp_path / "c").read_index().environments) == (2, 2)


def test_a_split_of_the_merged_library_outlives_merging_again(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", SOURCE.replace('copies"] < 1', 'copies"] < 2'))
    LibraryStore.open(a).write_splits({"train": ["desk"]})
    merge_libraries([a, b], tmp_path / "c")
    LibraryStore.open(tmp_path / "c").write_splits({"test": ["desk"], "train": ["desk-2"]})
    merge_libraries([a, b], tmp_path / "c")
    merged = LibraryStore.open(tmp_path / "c")
    assert (split_of(merged, "desk"), split_of(merged, "desk-2")) == ("test", "train")


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", OTHER)
    with pytest.raises(UsageError, match="two or more"):
        merge_libraries([a], tmp_path / "c")
    with pytest.raises(UsageError, match="each once"):
        merge_libraries([a, a], tmp_path / "c")
    with pytest.raises(StoreError, match="is what is read"):
        merge_libraries([a, b], a)
    with pytest.raises(StoreError, match="made otherwise"):
        merge_libraries([a, b], make(tmp_path / "other"))
    with pytest.raises(StoreError, match="no such library"):
        merge_libraries([a, tmp_path / "missing"], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_copies_equal_but_for_names_stay_on_one_side_of_a_split(tmp_path: Path) -> None:
    # OTHER differs in a text only, which its structure does not count.
    merge_libraries([make(tmp_path / "a"), make(tmp_path / "b", OTHER)], tmp_path / "c")
    with pytest.raises(UsageError, match="2 splits: 1 of different structure"):
        split_library(tmp_path / "c", {"train": 0.5, "test": 0.5})
