from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from env.lending import scenario, skeleton

from envscaler.env import Library, open_library
from envscaler.report.replay import view_episode
from envscaler.rollout import RolloutSettings, run_rollout
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import Trajectory


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    path = tmp_path_factory.mktemp("replay") / "desk"
    environment = skeleton()
    LibraryStore.create(path).write_environment(environment, None, [scenario(environment)])
    with open_library(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def played(library: Library) -> dict[str, Trajectory]:
    out = {}
    for agent in ("oracle", "random"):
        report = asyncio.run(run_rollout(library, RolloutSettings(agent=agent)))
        (out[agent],) = RunStore.open(report.run).trajectories()
    return out


@pytest.mark.parametrize("agent", ["oracle", "random"])
def test_playing_an_episode_again_leads_to_the_recorded_states(
    library: Library, played: dict[str, Trajectory], agent: str
) -> None:
    view = view_episode(played[agent], library)
    assert view.replay is None
    assert view.agrees is True
    for step in view.steps:
        assert step.changes is not None
        assert len(step.changes) == len(step.step.observations)


def test_each_call_is_told_what_it_alone_changed(library: Library, played: dict[str, Trajectory]) -> None:
    view = view_episode(played["oracle"], library)
    assert [step.changes and [len(changes) for changes in step.changes] for step in view.steps] == [[0], [3], ()]


def test_a_recorded_state_that_was_not_reached_is_told(library: Library, played: dict[str, Trajectory]) -> None:
    trajectory = played["oracle"]
    steps = (trajectory.steps[0].model_copy(update={"state_digest": "0" * 32}), *trajectory.steps[1:])
    view = view_episode(trajectory.model_copy(update={"steps": steps}), library)
    assert view.agrees is False
    assert [step.agrees for step in view.steps] == [False, True, True]


def test_without_the_library_an_episode_is_shown_without_changes(played: dict[str, Trajectory]) -> None:
    view = view_episode(played["oracle"], None)
    assert view.replay is not None
    assert view.task is None
    assert [step.changes for step in view.steps] == [None] * 3


@pytest.mark.parametrize("field", ["env_digest", "scenario_digest"])
def test_what_was_changed_since_is_not_played(library: Library, played: dict[str, Trajectory], field: str) -> None:
    view = view_episode(played["oracle"].model_copy(update={field: "0" * 32}), library)
    assert view.replay is not None
    assert "no longer the one that was played" in view.replay
    assert view.task == "Lend Emma to Ann."


def test_an_environment_that_is_gone_is_said_to_be(
    library: Library, played: dict[str, Trajectory], tmp_path: Path
) -> None:
    shutil.copytree(library.path, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "environments" / "lending-desk")
    with open_library(tmp_path / "copy") as emptied:
        view = view_episode(played["oracle"], emptied)
    assert view.replay is not None
    assert "lending-desk" in view.replay
