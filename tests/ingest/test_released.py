"""Published files become a library that every command takes."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from released.desk import ENVIRONMENT, FINAL, SCENARIO, SOURCE, as_runner, recorded

from envscaler.env import open_library
from envscaler.errors import StoreError, UsageError
from envscaler.ingest import ImportReport, ReleasedFiles, import_released
from envscaler.rollout import RolloutSettings, run_replay, run_rollout
from envscaler.store import LibraryStore, RunStore


def published(folder: Path, environments: Any = None, scenarios: Any = None, episodes: Any = None) -> ReleasedFiles:
    paths = {"environments": environments, "scenarios": scenarios, "trajectories": episodes}
    for name, value in paths.items():
        if value is not None:
            (folder / f"{name}.json").write_text(json.dumps(value))
    return ReleasedFiles(**{name: folder / f"{name}.json" for name, value in paths.items() if value is not None})


def run_import(files: ReleasedFiles, library: Path, **options: Any) -> ImportReport:
    return asyncio.run(import_released(files, library, **{"check": False, **options}))


def bytes_of(library: Path) -> dict[str, bytes]:
    paths = [library / "library.json", *(library / "environments").rglob("*"), *(library / "rollouts").rglob("*.json*")]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


@pytest.fixture(scope="module")
def episode() -> dict[str, Any]:
    return recorded(("open_ticket", {"title": "lamp"}), ("close_ticket", {"ticket_id": "$0.ticket_id"}), FINAL)


def test_files_become_a_library_and_a_run(tmp_path: Path, episode: dict[str, Any]) -> None:
    files = published(tmp_path, {"env_7_rl": ENVIRONMENT}, [SCENARIO], [as_runner(episode), episode])
    report = run_import(files, tmp_path / "L")
    assert (report.environments.added, report.scenarios.added, report.trajectories.added) == (1, 1, 2)
    assert report.skipped == ()
    store = LibraryStore.open(tmp_path / "L")
    assert store.env_ids() == ("env_7_rl",)
    assert [scenario.id for scenario in store.scenarios("env_7_rl")] == ["env_7_rl-task_1"]
    assert report.run is not None
    assert [made.id for made in RunStore.open(report.run).trajectories()] == ["env_7_rl-task_1.0", "env_7_rl-task_1.1"]


def test_a_second_import_changes_no_byte(tmp_path: Path, episode: dict[str, Any]) -> None:
    files = published(tmp_path, [ENVIRONMENT], [SCENARIO], [episode])
    run_import(files, tmp_path / "L", check=True)
    before = bytes_of(tmp_path / "L")
    report = run_import(files, tmp_path / "L", check=True)
    assert bytes_of(tmp_path / "L") == before
    assert (report.environments.unchanged, report.scenarios.unchanged, report.trajectories.unchanged) == (1, 1, 1)


def test_an_import_that_was_stopped_goes_on(tmp_path: Path, episode: dict[str, Any]) -> None:
    whole = published(tmp_path, [ENVIRONMENT], [SCENARIO], [episode, as_runner(episode), episode])
    run_import(whole, tmp_path / "whole")
    run_import(ReleasedFiles(whole.environments), tmp_path / "L")
    # What a killed run leaves: environments without scenarios, and the first episodes, the last one torn.
    partial = LibraryStore.open(tmp_path / "L").run("released-trajectories").path
    finished = (tmp_path / "whole" / "rollouts" / "released-trajectories" / "trajectories.jsonl").read_bytes()
    partial.mkdir(parents=True)
    (partial / "trajectories.jsonl").write_bytes(finished[: len(finished) // 2])
    run_import(whole, tmp_path / "L")
    assert (partial / "trajectories.jsonl").read_bytes() == finished
    left, right = (
        {
            name.removeprefix(str(folder)): content
            for name, content in bytes_of(folder).items()
            if "run.json" not in name
        }
        for folder in (tmp_path / "whole", tmp_path / "L")
    )
    assert left == right


def test_what_a_user_changed_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    files = published(tmp_path, [ENVIRONMENT], [SCENARIO])
    run_import(files, tmp_path / "L")
    program = tmp_path / "L" / "environments" / "env_7_rl" / "program.py"
    program.write_text(SOURCE + "\nMENDED = True\n")
    report = run_import(files, tmp_path / "L")
    assert report.environments.kept == 1
    assert "MENDED" in program.read_text()
    assert run_import(files, tmp_path / "L", replace=True).environments.replaced == 1
    assert program.read_text() == SOURCE


def test_an_episode_that_differs_stays_unless_it_is_to_be_replaced(tmp_path: Path, episode: dict[str, Any]) -> None:
    other = {**episode, "total_reward": 0.25}
    run_import(published(tmp_path, [ENVIRONMENT], [SCENARIO], [episode, other]), tmp_path / "L")
    files = published(tmp_path, episodes=[other, other])

    def rewards() -> list[float | None]:
        run = RunStore.open(tmp_path / "L" / "rollouts" / "released-trajectories")
        return [made.recorded_reward for made in run.trajectories()]

    report = run_import(files, tmp_path / "L")
    assert (report.trajectories.kept, report.trajectories.unchanged) == (1, 1)
    assert rewards() == [episode["total_reward"], 0.25]
    assert run_import(files, tmp_path / "L", replace=True).trajectories.replaced == 1
    assert rewards() == [0.25, 0.25]


def test_the_scenario_of_an_episode_is_found_in_json_text_too(tmp_path: Path, episode: dict[str, Any]) -> None:
    runner = as_runner(episode)
    runner["task_info"] = json.dumps(runner["task_info"])
    report = run_import(published(tmp_path, [ENVIRONMENT], [SCENARIO], [runner]), tmp_path / "L")
    assert (report.trajectories.added, report.skipped) == (1, ())


def test_operations_without_a_name_that_is_a_text_name_no_tool(tmp_path: Path) -> None:
    odd = {**ENVIRONMENT, "operation_list": [{"operation_name": ["x"]}, *ENVIRONMENT.get("operation_list", [])]}
    assert run_import(published(tmp_path, [odd]), tmp_path / "L").environments.added == 1


def test_bad_entries_are_skipped_counted_and_named(tmp_path: Path, episode: dict[str, Any]) -> None:
    bad_environment = {name: part for name, part in ENVIRONMENT.items() if name != "env_class_code"} | {"env_id": "b"}
    files = published(
        tmp_path,
        [ENVIRONMENT, bad_environment, ENVIRONMENT],
        [SCENARIO, {**SCENARIO, "init_config": "[1, 2]"}, {**SCENARIO, "env_id": "b"}, 7],
        [episode, {**episode, "total_reward": "much"}],
    )
    report = run_import(files, tmp_path / "L")
    assert (report.environments.added, report.environments.skipped) == (1, 2)
    assert (report.scenarios.added, report.scenarios.skipped) == (1, 3)
    assert (report.trajectories.added, report.trajectories.skipped) == (1, 1)
    told = "\n".join(report.skipped)
    for words in (
        "entry 2: field `env_class_code` is missing",
        "entry 3: there is an earlier environment with id env_7_rl",
        "entry 2: field `init_config` holds a list",
        "entry 3: there is no environment 'b'",
        "entry 4 holds a number",
        "field `total_reward` holds a text",
    ):
        assert words in told


def test_scenarios_of_one_id_are_told_apart_and_come_back_under_it(tmp_path: Path) -> None:
    twins = [SCENARIO, {**SCENARIO, "task": "another"}]
    run_import(published(tmp_path, [ENVIRONMENT], twins), tmp_path / "L")
    ids = [scenario.id for scenario in LibraryStore.open(tmp_path / "L").scenarios("env_7_rl")]
    assert ids == ["env_7_rl-task_1", "env_7_rl-task_1-2"]


def test_scenarios_can_follow_into_a_library_that_has_the_environments(tmp_path: Path) -> None:
    files = published(tmp_path, [ENVIRONMENT], [SCENARIO])
    run_import(ReleasedFiles(environments=files.environments), tmp_path / "L")
    report = run_import(ReleasedFiles(scenarios=files.scenarios), tmp_path / "L")
    assert report.scenarios.added == 1
    assert report.imported == ()


def test_the_check_names_the_exact_fault(tmp_path: Path) -> None:
    broken = copy.deepcopy(ENVIRONMENT) | {"env_id": "broken", "env_class_code": SOURCE.replace("import uuid", "")}
    broken["env_class_code"] = broken["env_class_code"].replace(
        'return {"success": True, "data": list',
        'self.log.append("seen")\n        return {"success": True, "data": list',
    )
    unparsable = copy.deepcopy(ENVIRONMENT) | {"env_id": "unparsable", "env_class_code": "class TicketDesk(:"}
    report = run_import(published(tmp_path, [ENVIRONMENT, broken, unparsable], [SCENARIO]), tmp_path / "L", check=True)
    good, bad, worst = report.imported
    assert good.checked_on == "env_7_rl-task_1"
    assert good.broken == ()
    assert {finding.oracle for finding in good.findings or ()} <= {"schema"}
    assert any("list_tickets changed the state" in finding.detail for finding in bad.broken)
    assert worst.broken[0].oracle == "not_loadable"
    assert "line 1" in worst.broken[0].detail


def test_nothing_to_import_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--environments"):
        run_import(ReleasedFiles(), tmp_path / "L")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        run_import(ReleasedFiles(environments=tmp_path / "none.json"), tmp_path / "L")


def test_an_imported_library_is_played_and_its_runs_replay(tmp_path: Path) -> None:
    run_import(published(tmp_path, [ENVIRONMENT], [SCENARIO]), tmp_path / "L")
    with open_library(tmp_path / "L") as library:
        env = library.make("env_7_rl")
        env.reset()
        assert env.call("pair", {}).content == "[1, [2, 3]]"
        # Published schemas are only reported: what the method has a default for need not be given.
        assert not env.call("open_ticket", {"title": "x"}).is_error
        assert "due_date" in env.call("open_ticket", {"title": "x", "due_date": "y"}).content
        env.close()
        played = asyncio.run(run_rollout(library, RolloutSettings(agent="random", samples=2)))
        report = asyncio.run(run_replay(library, played.run))
    assert report.summary.observations == report.summary.observations_equal > 0
    assert report.summary.reward_equal == report.summary.episodes == 2


def test_everything_published_is_imported_and_checked(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "data" / "envscaler_release"
    files = ReleasedFiles(folder / "environments.json", folder / "scenarios.json", folder / "episodes.jsonl")
    report = run_import(files, tmp_path / "L", check=True)
    assert (report.environments.added, report.scenarios.added, report.trajectories.added) == (14, 27, 14)
    assert report.skipped == ()
    # Programs run hardened and unchanged; where they break the contract it is in their published schemas.
    assert [part.env_id for part in report.imported if part.broken] == []
    assert sum(bool(part.findings) for part in report.imported) == 11
