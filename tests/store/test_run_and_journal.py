"""Files that grow by lines: what a kill tore is dropped, what was written before is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.errors import SchemaVersionError, StoreError
from envscaler.messages import AssistantMessage
from envscaler.store import Journal, RunStore
from envscaler.trajectory import Step, StopReason, Trajectory, Usage

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def trajectory(index: int) -> Trajectory:
    return Trajectory(
        id=f"t{index}",
        env_id="desk",
        scenario_id="s0",
        env_digest="d",
        scenario_digest="e",
        agent="noop",
        steps=(Step(turn=0, assistant=AssistantMessage(content="fertig ✓")),),
        stop=StopReason.FINISHED,
    )


def test_trajectories_are_read_in_the_order_of_writing(tmp_path: Path) -> None:
    with RunStore(tmp_path / "run") as run:
        for index in range(3):
            run.append(trajectory(index))
        # Readable while the run goes on.
        assert [each.id for each in run.trajectories()] == ["t0", "t1", "t2"]
    assert list(RunStore.open(tmp_path / "run").trajectories()) == [trajectory(index) for index in range(3)]


def test_a_torn_last_line_is_dropped_and_overwritten(tmp_path: Path) -> None:
    run = RunStore(tmp_path)
    run.append(trajectory(0))
    run.close()
    path = tmp_path / "trajectories.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert [each.id for each in RunStore(tmp_path).trajectories()] == ["t0"]
    with RunStore(tmp_path) as again:
        again.append(trajectory(1))
    assert path.read_bytes().count(b"\n") == 2
    assert [each.id for each in RunStore(tmp_path).trajectories()] == ["t0", "t1"]


def test_a_last_line_without_newline_that_is_whole_is_kept(tmp_path: Path) -> None:
    with RunStore(tmp_path) as run:
        run.append(trajectory(0))
    path = tmp_path / "trajectories.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    with RunStore(tmp_path) as run:
        run.append(trajectory(1))
    assert [each.id for each in RunStore(tmp_path).trajectories()] == ["t0", "t1"]


def test_a_broken_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path) -> None:
    with RunStore(tmp_path) as run:
        run.append(trajectory(0))
    path = tmp_path / "trajectories.jsonl"
    path.write_bytes(b"{broken\n" + path.read_bytes())
    with pytest.raises(StoreError, match=r"trajectories\.jsonl, line 1 is not JSON"):
        list(RunStore(tmp_path).trajectories())


def test_run_json_holds_a_record_of_the_callers(tmp_path: Path) -> None:
    run = RunStore(tmp_path / "run")
    assert not run.exists
    assert run.read_run(Usage) is None
    run.write_run(Usage(input_tokens=3))
    assert run.exists
    assert run.read_run(Usage) == Usage(input_tokens=3)


def test_what_is_no_run_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no run"):
        RunStore.open(tmp_path)


def test_trajectories_are_arranged_the_last_of_a_place_stays(tmp_path: Path) -> None:
    places = {"t0": (0,), "t1": (1,), "t2": (2,), "t9": (1,), "t5": None}
    with RunStore(tmp_path) as run:
        for index in (2, 5, 9, 0, 1):
            run.append(trajectory(index))
        run.arrange(lambda each: places[each.id])
        run.append(trajectory(3))
    assert [each.id for each in run.trajectories()] == ["t0", "t1", "t2", "t3"]


@given(st.lists(st.tuples(st.text(), VALUES), max_size=8), st.integers(0, 400))
def test_a_journal_cut_anywhere_holds_a_prefix(tmp_path_factory: pytest.TempPathFactory, entries, cut: int) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("journal") / "deep" / "journal.jsonl"
    with Journal(path) as journal:
        for key, value in entries:
            journal.put(key, value)
    content = path.read_bytes() if entries else b""
    if entries:
        path.write_bytes(content[:cut])
    kept = content[:cut].count(b"\n")
    again = Journal(path)
    # A line whose newline alone is missing is whole.
    expected = [dict(entries[:kept]), dict(entries[: kept + 1])]
    assert {key: again.get(key) for key in again} in expected
    again.put("last", 1)
    again.close()
    assert Journal(path).get("last") == 1
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_the_last_value_of_a_key_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl")
    journal.put("a", 1)
    journal.put("b", None)
    journal.put("a", {"x": "\ud800"})
    journal.close()
    again = Journal(tmp_path / "j.jsonl")
    assert list(again) == ["a", "b"]
    assert "b" in again
    assert "c" not in again
    assert len(again) == 2
    assert again.get("a") == {"x": "\ud800"}


def test_a_journal_of_a_newer_version_is_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text('{"schema_version": 2, "key": "a", "value": 1}\n')
    with pytest.raises(SchemaVersionError):
        Journal(path)
    path.write_text('{"schema_version": 1, "key": "a"}\n')
    with pytest.raises(StoreError, match="line 1 is no journal entry"):
        Journal(path)
