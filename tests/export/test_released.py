"""A library in the authors' files: what was imported comes back, what is ours can be read."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from env.lending import scenario as own_scenario
from env.lending import skeleton as own_skeleton
from released.desk import ENVIRONMENT, FINAL, SCENARIO, as_runner, recorded

from envscaler.env import open_library
from envscaler.errors import StoreError
from envscaler.export import export_released
from envscaler.ingest import ReleasedFiles, import_released
from envscaler.rollout import RolloutSettings, run_replay, run_rollout
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import StopReason, Trajectory


def run_import(folder: Path, library: Path) -> None:
    names = ("environments", "scenarios", "trajectories")
    paths = [next(iter(folder.glob(f"{name}.json*")), None) for name in names]
    asyncio.run(import_released(ReleasedFiles(*paths), library, check=False))


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("keyed", [True, False])
def test_what_was_imported_comes_back_in_its_order(tmp_path: Path, keyed: bool) -> None:
    source = tmp_path / "source"
    source.mkdir()
    environments = [{**ENVIRONMENT, "env_id": name} for name in ("env_9", "env_10", "env_1")]
    scenarios = [
        {**SCENARIO, "env_id": name, "task_id": f"{number}", "extra": None}
        for number, name in enumerate(("env_1", "env_9", "env_1", "env_10", "env_9", "env_9"))
    ]
    episode = {**recorded(("list_tickets", {}), FINAL), "env_id": "env_9", "task_id": "1"}
    episodes = [episode, as_runner(episode)]
    written = {part["env_id"]: part for part in environments} if keyed else environments
    (source / "environments.json").write_text(json.dumps(written))
    (source / "scenarios.json").write_text(json.dumps(scenarios))
    (source / "trajectories.json").write_text(json.dumps(episodes))
    run_import(source, tmp_path / "L")
    report = export_released(tmp_path / "L", tmp_path / "out")
    assert read(tmp_path / "out" / "environments.json") == written
    assert read(tmp_path / "out" / "scenarios.json") == scenarios
    assert read(tmp_path / "out" / "trajectories.json") == episodes
    assert (report.environments, report.scenarios, report.trajectories) == (3, 6, {"trajectories.json": 2})
    run_import(tmp_path / "out", tmp_path / "again")
    for path in (tmp_path / "L" / "environments").rglob("*.*"):
        assert (tmp_path / "again" / path.relative_to(tmp_path / "L")).read_bytes() == path.read_bytes()


def test_everything_published_comes_back_as_it_was(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "data" / "envscaler_release"
    files = ReleasedFiles(folder / "environments.json", folder / "scenarios.json", folder / "episodes.jsonl")
    asyncio.run(import_released(files, tmp_path / "L", check=False))
    export_released(tmp_path / "L", tmp_path / "out")
    for name in ("environments.json", "scenarios.json"):
        assert read(tmp_path / "out" / name) == read(folder / name)
    back, before = (
        [json.loads(line) for line in (place / "episodes.jsonl").read_text(encoding="utf-8").splitlines()]
        for place in (tmp_path / "out", folder)
    )
    assert back == before


def test_an_episode_stays_what_it_was_when_the_scenario_that_it_played_is_changed(
    tmp_path: Path,
) -> None:
    episode = recorded(("list_tickets", {}), FINAL)
    source = tmp_path / "source"
    source.mkdir()
    (source / "environments.json").write_text(json.dumps({"env_7_rl": ENVIRONMENT}))
    (source / "scenarios.json").write_text(json.dumps([SCENARIO]))
    (source / "trajectories.json").write_text(json.dumps([episode, as_runner(episode)]))
    run_import(source, tmp_path / "L")
    store = LibraryStore.open(tmp_path / "L")
    (env_id,) = store.env_ids()
    (scenario,) = store.scenarios(env_id)
    store.replace_scenarios(env_id, [scenario.model_copy(update={"task": "Another task.", "initial_state": {}})])
    export_released(tmp_path / "L", tmp_path / "out")
    back = read(tmp_path / "out" / "trajectories.json")
    assert back == [episode, as_runner(episode)]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "L"
    environment = own_skeleton()
    store = LibraryStore.create(folder)
    store.write_environment(environment, None, [own_scenario(environment), own_scenario(environment, 2)])
    with open_library(folder) as library:
        asyncio.run(run_rollout(library, RolloutSettings(agent="oracle", out=folder / "rollouts" / "oracle")))
    return folder


def test_a_library_of_ours_is_taken_by_a_loader_like_the_authors(own: Path, tmp_path: Path) -> None:
    report = export_released(own, tmp_path)
    assert report.trajectories == {}
    environments, scenarios = read(tmp_path / "environments.json"), read(tmp_path / "scenarios.json")
    for scenario in scenarios:
        environment = environments[scenario["env_id"]]
        # It looks the class up by the scenario's name for it, copies the state, and hands the tools to a model.
        assert f"class {scenario['env_class_name']}" in environment["env_class_code"]
        assert isinstance(scenario["init_config"], dict)
        assert all(tool["type"] == "function" for tool in environment["tools"])
        assert all("def check_func" in check["check_func"] for check in scenario["checklist_with_func"])
        assert "".join(f"- {rule}\n" for rule in environment["constraints_rules"])
    assert len(scenarios) == 2


def test_episodes_of_ours_go_out_and_replay_in_the_library_that_takes_them(own: Path, tmp_path: Path) -> None:
    report = export_released(own, tmp_path / "out", [own / "rollouts" / "oracle"])
    assert report.trajectories == {"oracle.json": 2}
    files = ReleasedFiles(tmp_path / "out" / "environments.json", tmp_path / "out" / "scenarios.json")
    asyncio.run(import_released(files, tmp_path / "L", check=False))
    with open_library(tmp_path / "L") as library:
        replayed = asyncio.run(run_replay(library, tmp_path / "out" / "oracle.json"))
    assert replayed.summary.reward_equal == replayed.summary.episodes == 2
    # Ours are shown as JSON, the authors' as Python: equal in value.
    assert replayed.agrees


def test_an_episode_whose_calls_were_put_right_replays_from_the_file_too(own: Path, tmp_path: Path) -> None:
    (played, _) = RunStore(own / "rollouts" / "oracle").trajectories()
    steps = [step.model_dump() for step in played.steps]
    for step in steps:
        for call, seen in zip(step["assistant"]["tool_calls"], step["observations"], strict=True):
            seen["arguments"] = call["arguments"]
            call["arguments"] = dict.fromkeys(call["arguments"], 0)
    with RunStore(tmp_path / "run") as run:
        run.append(Trajectory.model_validate({**played.model_dump(), "steps": steps}))
    export_released(own, tmp_path / "out", [tmp_path / "run"])
    files = ReleasedFiles(tmp_path / "out" / "environments.json", tmp_path / "out" / "scenarios.json")
    asyncio.run(import_released(files, tmp_path / "L", check=False))
    with open_library(tmp_path / "L") as library:
        replayed = asyncio.run(run_replay(library, tmp_path / "out" / "run.json"))
    assert replayed.summary.observations > 0
    assert replayed.agrees


def test_an_episode_that_the_machinery_cut_short_is_left_out_and_not_given_a_reward(own: Path, tmp_path: Path) -> None:
    run = RunStore(tmp_path / "run")
    first, second = RunStore(own / "rollouts" / "oracle").trajectories()
    run.append(first.model_copy(update={"stop": StopReason.INFRASTRUCTURE, "verdict": None}))
    run.append(second)
    run.close()
    report = export_released(own, tmp_path / "out", [tmp_path / "run"])
    assert report.trajectories == {"run.json": 1}
    assert first.id in report.left_out[0]


def test_a_file_in_the_way_and_a_missing_run_are_refused(own: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="name a folder"):
        export_released(own, tmp_path / "file")
    with pytest.raises(StoreError, match="is no run"):
        export_released(own, tmp_path / "out", [tmp_path])
