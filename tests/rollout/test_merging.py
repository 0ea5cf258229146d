"""Runs made one: as if one command had played them, or a sentence that says why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rollout.test_run import keys, lends, make_library, models, without_times

from envscaler.env import Library, open_library
from envscaler.errors import EndpointUnavailable, StoreError, UsageError
from envscaler.llm.chat import ModelRequest
from envscaler.llm.scripted import Scripted
from envscaler.rollout import RolloutSettings, RunRecord, merge_runs, run_rollout
from envscaler.store import RunStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with make_library(tmp_path / "L") as opened:
        yield opened


async def played(library: Library, run: Path, script: Any = lends, **settings: Any) -> Path:
    await run_rollout(library, RolloutSettings(out=run, **settings), models(script))
    return run


async def test_two_halves_are_the_whole(library: Library, tmp_path: Path) -> None:
    halves = [await played(library, tmp_path / f"half-{n}", env_ids=(f"desk-{n}",), samples=2) for n in (1, 0)]
    whole = await played(library, tmp_path / "whole", samples=2)
    report = merge_runs(halves, tmp_path / "merged")
    assert without_times(tmp_path / "merged") == without_times(whole)
    record = RunStore(whole).read_run(RunRecord)
    assert record is not None
    assert report.record.scores == record.scores
    assert (report.record.status, report.record.planned) == ("complete", 12)
    assert report.record.spent.calls == record.spent.calls
    assert list(report.taken.values()) == [6, 6]
    assert RunStore(tmp_path / "merged").read_run(RunRecord) == report.record


async def test_more_samples_extend_a_merged_run(library: Library, tmp_path: Path) -> None:
    first = await played(library, tmp_path / "a", env_ids=("desk-0",))
    second = await played(library, tmp_path / "b", env_ids=("desk-1",))
    merge_runs([first, second], tmp_path / "merged")
    settings = RolloutSettings(out=tmp_path / "merged", samples=3)
    report = await run_rollout(library, settings, models())
    assert (report.resumed, report.played) == (6, 12)


async def test_of_equal_samples_the_finished_one_counts_then_that_of_the_first_run(
    library: Library, tmp_path: Path
) -> None:
    asked = 0

    def breaks(request: ModelRequest) -> Scripted:
        nonlocal asked
        asked += 1
        return lends(request) if asked <= 5 else EndpointUnavailable("down")

    with pytest.raises(EndpointUnavailable):
        await played(library, tmp_path / "a", breaks, concurrency=1)
    await played(library, tmp_path / "b", lambda request: "I would rather not.")
    report = merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "ab")
    assert report.doubled == 3
    assert report.scores.stops == {"finished": 6}
    assert list(report.taken.values()) == [2, 4]
    other = merge_runs([tmp_path / "b", tmp_path / "a"], tmp_path / "ba")
    assert list(other.taken.values()) == [6, 0]
    assert len(keys(tmp_path / "ba")) == len(set(keys(tmp_path / "ba"))) == 6


async def test_renumbered_samples_are_all_kept(library: Library, tmp_path: Path) -> None:
    first = await played(library, tmp_path / "a", samples=2)
    second = await played(library, tmp_path / "b", lambda request: "No.")
    report = merge_runs([first, second], tmp_path / "merged", renumber=True)
    assert report.scores.episodes == 18
    assert report.doubled == 0
    stored = list(RunStore(tmp_path / "merged").trajectories())
    assert [part.sample for part in stored] == [0, 1, 2] * 6
    assert len({part.id for part in stored}) == 18
    assert [len(part.steps) for part in stored[:3]] == [2, 2, 1]
    assert report.record.settings.samples == 3


async def test_episodes_of_another_version_of_a_scenario_are_left_out(library: Library, tmp_path: Path) -> None:
    first = await played(library, tmp_path / "a")
    changed = [part.model_copy(update={"task": part.task + "!"}) for part in library.scenarios("desk-0")[:1]]
    library.store.replace_scenarios("desk-0", [*changed, *library.scenarios("desk-0")[1:]])
    second = await played(open_library(library.path), tmp_path / "b", samples=2)
    report = merge_runs([first, second], tmp_path / "merged")
    assert report.other_versions == 2
    assert report.scores.episodes == 11


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"agent": "noop"}, "agent is 'noop' there and 'model' here"),
        ({"step_limit": 7}, "step_limit is 7 there and 30 here"),
        ({"coerce": True}, "coerce is True there and False here"),
    ],
)
async def test_what_keeps_runs_apart_is_named(
    library: Library, tmp_path: Path, settings: dict[str, Any], says: str
) -> None:
    first = await played(library, tmp_path / "a")
    second = await played(library, tmp_path / "b", **settings)
    with pytest.raises(UsageError, match=says):
        merge_runs([first, second], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


async def test_nothing_is_written_over(library: Library, tmp_path: Path) -> None:
    first = await played(library, tmp_path / "a")
    second = await played(library, tmp_path / "b")
    before = (second / "trajectories.jsonl").read_bytes()
    for out in (first, second):
        with pytest.raises(UsageError, match="name a new folder"):
            merge_runs([first], out)
    with pytest.raises(UsageError, match="named twice"):
        merge_runs([first, second, first], tmp_path / "merged")
    with pytest.raises(StoreError, match="is no run"):
        merge_runs([first, tmp_path / "nowhere"], tmp_path / "merged")
    assert (second / "trajectories.jsonl").read_bytes() == before
