"""Recorded episodes played again: published ones, and our own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from env.lending import scenario, skeleton
from released.desk import ENVIRONMENT, FINAL, SCENARIO, as_runner, recorded

from envscaler.env import open_library
from envscaler.errors import StoreError
from envscaler.ingest import ReleasedFiles, import_released
from envscaler.rollout import ReplayedEpisode, ReplayReport, RolloutSettings, run_replay, run_rollout
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import StopReason

OPEN = ("open_ticket", {"title": "broken lamp"})
CLOSE = ("close_ticket", {"ticket_id": "$0.ticket_id"})


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with the ticket desk."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "environments.json").write_text(json.dumps([ENVIRONMENT]))
    (folder / "scenarios.json").write_text(json.dumps([SCENARIO]))
    files = ReleasedFiles(folder / "environments.json", folder / "scenarios.json")
    asyncio.run(import_released(files, folder / "L", check=False))
    return folder / "L"


def replayed(library: Path, folder: Path, *episodes: Any) -> ReplayReport:
    path = folder / "episodes.jsonl"
    path.write_text("".join(f"{json.dumps(episode)}\n" for episode in episodes))
    with open_library(library) as opened:
        return asyncio.run(run_replay(opened, path))


def one(report: ReplayReport) -> ReplayedEpisode:
    assert report.skipped == ()
    (episode,) = report.episodes
    return episode


def test_created_ids_are_mapped_so_that_they_explain_nothing(desk: Path, tmp_path: Path) -> None:
    episode = one(replayed(desk, tmp_path, recorded(OPEN, CLOSE, ("list_tickets", {}), FINAL)))
    assert episode.reward_equal
    assert (episode.fraction, episode.gained, episode.solved) == (1.0, 1.0, True)
    assert (episode.observations, episode.observations_equal_up_to_ids) == (3, 3)
    # Closing says nothing of an id; opening and listing do, and listing shows when the ticket was opened.
    assert episode.observations_equal == 1
    assert episode.observations_with_clock_values == 1
    assert episode.explanation.kind is None


def test_an_id_that_the_clock_made_is_mapped_as_well(desk: Path, tmp_path: Path) -> None:
    actions = (OPEN, ("list_tickets", {}), ("forget_log", {"entry": "$1.last"}), FINAL)
    episode = one(replayed(desk, tmp_path, recorded(*actions)))
    assert episode.differences == ()
    assert episode.observations_equal_up_to_ids == 3


def test_a_value_that_neither_chance_nor_clock_made_is_a_difference(desk: Path, tmp_path: Path) -> None:
    episode = recorded(OPEN, CLOSE, FINAL)
    episode["steps"][1]["observation"]["content"] = "{'success': True, 'message': 'filed'}"
    report = replayed(desk, tmp_path, episode)
    assert one(report).observations_equal_up_to_ids == 1
    assert "filed" in one(report).differences[0]
    assert not report.agrees


def test_a_message_with_an_id_is_not_equal_to_another_message(desk: Path, tmp_path: Path) -> None:
    episode = recorded(OPEN, FINAL)
    told = episode["steps"][0]["observation"]
    told["content"] = told["content"].replace("opened", "refused")
    assert one(replayed(desk, tmp_path, episode)).observations_equal_up_to_ids == 0


def test_one_id_cannot_stand_for_two(desk: Path, tmp_path: Path) -> None:
    episode = recorded(OPEN, OPEN, FINAL)
    first, second = (step["observation"]["content"] for step in episode["steps"][:2])
    episode["steps"][1]["observation"]["content"] = first
    assert first != second
    assert one(replayed(desk, tmp_path, episode)).observations_equal_up_to_ids == 1


def test_an_episode_that_an_exception_ended_is_explained_by_it(desk: Path, tmp_path: Path) -> None:
    raising = ("assign", {"ticket_id": "T-unknown", "clerk": "Bo"})
    report = replayed(desk, tmp_path, recorded(OPEN, CLOSE, raising))
    episode = one(report)
    assert (episode.reward_recorded, episode.reward_authors_rule, episode.fraction) == (0.0, 0.0, 1.0)
    assert episode.explanation.kind == "ended_by_exception"
    assert "KeyError: 'T-unknown'" in episode.explanation.evidence
    assert episode.observations_equal_up_to_ids == episode.observations == 3
    assert (report.summary.reward_equal, report.summary.reward_explained) == (0, 1)


def test_nothing_is_validated_so_that_the_programs_own_exception_is_seen(desk: Path, tmp_path: Path) -> None:
    episode = one(replayed(desk, tmp_path, recorded(("open_ticket", {"title": "x", "colour": "red"}))))
    assert episode.differences == ()
    assert (episode.observations, episode.observations_equal) == (1, 1)


def test_another_exception_than_the_recorded_one_is_a_difference(desk: Path, tmp_path: Path) -> None:
    episode = recorded(("assign", {"ticket_id": "T-unknown", "clerk": "Bo"}))
    seen = episode["steps"][0]["observation"]
    seen["content"] = seen["content"].replace("KeyError", "ValueError")
    assert one(replayed(desk, tmp_path, episode)).observations_equal_up_to_ids == 0


def test_an_episode_cut_at_the_limit_is_explained_by_it(desk: Path, tmp_path: Path) -> None:
    episode = one(replayed(desk, tmp_path, recorded(OPEN, CLOSE)))
    assert (episode.reward_recorded, episode.reward_authors_rule, episode.fraction) == (0.0, 0.0, 1.0)
    assert episode.explanation.kind == "cut_at_limit"


def test_a_reward_that_depends_on_the_day_is_explained_by_the_clock(desk: Path, tmp_path: Path) -> None:
    # In October the ticket of March is overdue and the clerk another; in the scenario's January it is not.
    check = {
        "check_item": "Is somebody late?",
        "check_func": "def check_func(final_state):\n    return final_state['clerk'] == 'late'",
    }
    report = replayed(desk, tmp_path, recorded(OPEN, ("overdue", {}), FINAL, checks=[check]))
    episode = one(report)
    assert (episode.reward_recorded, episode.fraction) == (1.0, 0.0)
    assert episode.explanation.kind == "clock_value"
    assert "the reward is 1.0" in episode.explanation.evidence
    assert report.agrees


def test_a_reward_that_nothing_accounts_for_is_unexplained(desk: Path, tmp_path: Path) -> None:
    report = replayed(desk, tmp_path, recorded(OPEN, CLOSE, FINAL, total_reward=0.25))
    assert report.summary.reward_unexplained == 1
    assert one(report).explanation.kind is None
    assert "0.25" in one(report).explanation.evidence
    assert not report.agrees


def test_checks_see_the_whole_state_at_reset_as_the_authors_bind_it(desk: Path, tmp_path: Path) -> None:
    # `tickets` is no key of the scenario's state: only the program's `__init__` makes it.
    assert "tickets" not in SCENARIO["init_config"]
    assert one(replayed(desk, tmp_path, recorded(OPEN, CLOSE, FINAL))).fraction == 1.0


def test_results_that_are_no_json_are_compared_by_value(desk: Path, tmp_path: Path) -> None:
    episode = one(replayed(desk, tmp_path, recorded(("pair", {}), FINAL)))
    assert episode.observations_equal == 1


def test_actions_that_called_no_tool_are_not_counted(desk: Path, tmp_path: Path) -> None:
    episode = recorded(OPEN, CLOSE, FINAL)
    refused = {"type": "user", "content": "Error: Failed to parse response to action"}
    invalid = {"type": "user", "content": "Error: Invalid action"}
    episode["steps"][1:1] = [
        {"action": {"content": "hm", "tool_calls": []}, "observation": refused},
        {"action": "no action at all", "observation": refused},
        {"action": {"name": "open_tikcet", "arguments": {}}, "observation": invalid},
        {"action": {"name": "open_ticket", "arguments": ["lamp"]}, "observation": invalid},
    ]
    outcome = one(replayed(desk, tmp_path, episode))
    assert (outcome.observations, outcome.observations_equal_up_to_ids) == (2, 2)
    assert outcome.reward_equal


def test_the_runners_form_takes_state_and_checks_from_the_library(desk: Path, tmp_path: Path) -> None:
    episode = recorded(OPEN, CLOSE, FINAL)
    runner = as_runner(episode)
    encoded = {**runner, **{name: json.dumps(runner[name]) for name in ("tools", "messages", "trajectory")}}
    report = replayed(desk, tmp_path, runner, encoded)
    assert report.summary.reward_equal == 2
    assert report.summary.observations == report.summary.observations_equal_up_to_ids == 4


def test_the_three_kinds_of_rewards_add_up_and_bad_entries_are_told(desk: Path, tmp_path: Path) -> None:
    good = recorded(OPEN, CLOSE, FINAL)
    bad = {**good, "env_id": "env_8_rl"}
    report = replayed(desk, tmp_path, good, recorded(OPEN, CLOSE), {**good, "total_reward": 0.9}, bad, {"steps": []})
    whole = report.summary
    assert (whole.reward_equal, whole.reward_explained, whole.reward_unexplained, whole.episodes) == (1, 1, 1, 3)
    assert len(report.skipped) == 2
    assert any("env_8_rl (1)" in said for said in report.skipped)
    assert any("line 5: field `env_id` is missing" in said for said in report.skipped)


def test_a_file_that_is_not_there_is_refused(desk: Path, tmp_path: Path) -> None:
    with open_library(desk) as opened, pytest.raises(StoreError, match="no such file"):
        asyncio.run(run_replay(opened, tmp_path / "nothing.jsonl"))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of ours with runs of three agents."""
    folder = tmp_path_factory.mktemp("own") / "L"
    environment = skeleton()
    store = LibraryStore.create(folder)
    store.write_environment(environment, None, [scenario(environment), scenario(environment, 2)])
    with open_library(folder) as library:
        for agent in ("oracle", "random", "noop"):
            settings = RolloutSettings(agent=agent, out=folder / "rollouts" / agent)
            asyncio.run(run_rollout(library, settings))
    return folder


@pytest.mark.parametrize("agent", ["oracle", "random", "noop"])
def test_our_own_runs_replay_in_every_observation_and_reward(own: Path, agent: str) -> None:
    with open_library(own) as library:
        report = asyncio.run(run_replay(library, own / "rollouts" / agent))
    whole = report.summary
    assert whole.episodes == whole.reward_equal == 2
    assert whole.observations == whole.observations_equal
    assert (whole.observations > 0) == (agent != "noop")
    assert all(episode.explanation.evidence == "" for episode in report.episodes)


def test_a_changed_program_is_named_where_our_own_run_differs(own: Path, tmp_path: Path) -> None:
    changed = skeleton(
        source=skeleton().source.replace('"message": "returned"', '"message": "back"').replace("L{", "N{")
    )
    store = LibraryStore.create(tmp_path / "L")
    store.write_environment(changed, None, [scenario(skeleton()), scenario(skeleton(), 2)])
    with open_library(tmp_path / "L") as library:
        report = asyncio.run(run_replay(library, own / "rollouts" / "oracle"))
    assert not report.agrees
    assert "is no longer the one that was played" in report.episodes[0].explanation.evidence
    assert "replayed" in report.episodes[0].differences[0]


def test_what_the_machinery_cut_short_is_left_out_and_told(own: Path, tmp_path: Path) -> None:
    trajectories = list(RunStore.open(own / "rollouts" / "oracle").trajectories())
    with RunStore(tmp_path / "run") as run:
        run.append(trajectories[0].model_copy(update={"stop": StopReason.INFRASTRUCTURE, "verdict": None}))
        run.append(trajectories[1])
    with open_library(own) as library:
        report = asyncio.run(run_replay(library, tmp_path / "run"))
    assert report.summary.episodes == 1
    assert "infrastructure" in report.skipped[0]


def test_the_published_episodes_replay_and_every_reward_is_accounted_for(shared_data: Path, tmp_path: Path) -> None:
    published = shared_data / "data" / "envscaler_release"
    files = ReleasedFiles(published / "environments.json", published / "scenarios.json", published / "episodes.jsonl")
    imported = asyncio.run(import_released(files, tmp_path / "L", check=False))
    assert imported.run is not None
    with open_library(tmp_path / "L") as library:
        of_file = asyncio.run(run_replay(library, published / "episodes.jsonl"))
        of_run = asyncio.run(run_replay(library, imported.run))
    whole = of_file.summary
    assert (whole.episodes, whole.observations, whole.observations_equal_up_to_ids) == (14, 170, 170)
    assert (whole.reward_equal, whole.reward_explained, whole.reward_unexplained) == (10, 4, 0)
    ended = [episode for episode in of_file.episodes if not episode.reward_equal]
    assert {episode.explanation.kind for episode in ended} == {"ended_by_exception"}
    assert all("TypeError" in episode.explanation.evidence for episode in ended)
    assert of_run.episodes == of_file.episodes
