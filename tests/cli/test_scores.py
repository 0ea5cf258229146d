from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import Command

from envscaler.store import RunStore


def test_scores_of_runs_are_told_with_intervals_and_floors(cli: Command, made_library: Path) -> None:
    answer = cli("scores", made_library / "rollouts/oracle", made_library / "rollouts/noop")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0].split()[:3] == ["run", "episodes", "solved"]
    assert lines[1].split()[:3] == ["oracle", "2", "1.000"]
    assert "doing nothing (noop)" in lines[2]
    assert "0.333" in lines[2]
    assert "oracle: ended: finished 2" in answer.out


@pytest.mark.parametrize(
    ("by", "group"), [("environment", "lending-desk"), ("difficulty", "unknown"), ("stop", "finished")]
)
def test_scores_are_told_by_group(by: str, group: str, cli: Command, made_library: Path) -> None:
    answer = cli("scores", made_library / "rollouts/oracle", "--by", by)
    assert answer.code == 0
    assert f"\n{by}" in answer.out
    assert f"\n{group}" in answer.out


def test_the_same_as_json(cli: Command, made_library: Path) -> None:
    (card,) = cli("scores", made_library / "rollouts/oracle", "--json").json["runs"]
    total = card["table"]["total"]
    assert (card["agent"], card["mode"], card["lack"]) == ("oracle", "non-conversation", None)
    assert (total["judged"], total["solved_rate"], total["scenarios"]) == (2, 1.0, 2)
    assert set(total["rewards"]["fraction"]) == {"value", "count", "scenarios", "low", "high"}
    assert set(card["table"]) == {"total", "environments", "difficulties", "stops"}
    assert [(floor["agent"], floor["source"]) for floor in card["floors"]] == [("noop", "noop")]


def test_a_run_without_its_library_is_scored_all_the_same(cli: Command, library: Path, tmp_path: Path) -> None:
    run = (library / "rollouts/oracle").rename(tmp_path / "alone")
    (run / "run.json").unlink()
    (card,) = cli("scores", run, "--json").json["runs"]
    assert card["agent"] is None
    assert card["floors"][0]["source"] == "the checks at reset"
    answer = cli("scores", run, "--by", "difficulty")
    assert "its library is not there" in answer.out


def test_a_run_of_which_nothing_is_judged_has_no_scores(cli: Command, library: Path) -> None:
    run = library / "rollouts/oracle"
    (run / "trajectories.jsonl").write_text("")
    answer = cli("scores", run)
    assert answer.code == 1
    assert "was not played to its end" in answer.out


def test_a_rollout_tells_its_floor_and_passes(cli: Command, library: Path) -> None:
    answer = cli("rollout", library, "--agent", "oracle", "--samples", 2, "--quiet")
    assert answer.code == 0
    assert "doing nothing (noop)" in answer.out
    assert "pass@1" in answer.out
    assert "pass^2" in answer.out


def test_two_runs_are_compared(cli: Command, made_library: Path) -> None:
    noop, oracle = made_library / "rollouts/noop", made_library / "rollouts/oracle"
    answer = cli("compare", noop, oracle, "--reward", "gained")
    assert answer.code == 0
    assert "Second less first: +1.000" in answer.out
    assert "2 scenarios of 1 environment in both runs: 2 better, 0 worse, 0 equal" in answer.out
    told = cli("compare", noop, oracle, "--json").json
    assert told["difference"]["value"] == pytest.approx(2 / 3)
    assert (told["pairs"], told["unit"], told["p"]) == (2, "scenario", 0.5)
    assert told["mcnemar"] == {"only_first": 0, "only_second": 2, "p": 0.5}


def test_what_cannot_be_compared_is_refused(cli: Command, library: Path) -> None:
    noop, oracle = library / "rollouts/noop", library / "rollouts/oracle"
    assert "are the same run" in cli("compare", noop, noop).refused()
    assert "is a library" in cli("compare", library, noop).refused()
    run = RunStore.open(oracle)
    edited = [one.model_copy(update={"scenario_digest": "edited"}) for one in run.trajectories()]
    (oracle / "trajectories.jsonl").unlink()
    with RunStore(oracle) as again:
        for one in edited:
            again.append(one)
    assert "nothing can be compared" in cli("compare", noop, oracle).refused()


def test_runs_of_the_same_name_are_told_apart(cli: Command, made_library: Path, library: Path) -> None:
    runs = made_library / "rollouts/noop", library / "rollouts/noop"
    answer = cli("scores", *runs)
    text = "".join(answer.out.split())
    assert all("".join(f"{run}: ended: finished 2".split()) in text for run in runs)
