"""Floors beside the scores of a run, read from what lies in the library."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest
from env.lending import scenario, skeleton

from envscaler.env import open_library
from envscaler.proof.run import run_prove
from envscaler.rollout import RolloutSettings, run_rollout
from envscaler.rollout.floors import AT_RESET, PROOFS, floors_of, levels_of
from envscaler.rollout.results import Result, results_of_run
from envscaler.scenario import Difficulty
from envscaler.store import LibraryStore


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a run of the oracle, of doing nothing and of random calls."""
    path = tmp_path_factory.mktemp("libraries") / "desk"
    store = LibraryStore.create(path)
    environment = skeleton()
    hard = Difficulty(calls=9, entities=4, rules=6, look_ups=5, forbidden=1)
    store.write_environment(
        environment, None, [scenario(environment, 1, difficulty=hard), scenario(environment, 2, task="Emma to Ann.")]
    )
    store.write_index({})

    async def play() -> None:
        with open_library(path) as library:
            for agent in ("oracle", "noop", "random"):
                await run_rollout(library, RolloutSettings(agent=agent, samples=2))

    anyio.run(play)
    return path


@pytest.fixture
def library(played: Path, tmp_path: Path) -> LibraryStore:
    return LibraryStore.open(shutil.copytree(played, tmp_path / "desk"))


def run_named(library: LibraryStore, agent: str) -> str:
    return next(name for name in library.rollouts() if name.startswith(agent))


def oracle(library: LibraryStore) -> list[Result]:
    return results_of_run(library.run(run_named(library, "oracle")))


def test_floors_are_runs_over_the_same_scenarios_that_lie_in_the_library(library: LibraryStore) -> None:
    floors = {floor.agent: floor for floor in floors_of(oracle(library), library, mode="non-conversation")}
    assert floors["noop"].source == run_named(library, "noop")
    assert floors["random"].source == run_named(library, "random")
    assert floors["noop"].scenarios == floors["random"].scenarios == 2
    assert floors["noop"].rewards["fraction"].value == pytest.approx(1 / 3)
    assert floors["noop"].rewards["gained"].value == 0.0


def test_without_such_a_run_doing_nothing_is_read_off_the_checks_at_reset(library: LibraryStore) -> None:
    results = oracle(library)
    for agent in ("noop", "random"):
        shutil.rmtree(library.run(run_named(library, agent)).path)
    (floor,) = floors_of(results, library, mode="non-conversation")
    assert (floor.agent, floor.source) == ("noop", AT_RESET)
    assert floor.rewards["fraction"].value == pytest.approx(1 / 3)
    assert floors_of(results, None, mode="non-conversation") == (floor,)


def test_runs_of_another_mode_and_the_run_itself_are_no_floor(library: LibraryStore) -> None:
    assert [floor.source for floor in floors_of(oracle(library), library, mode="conversation")] == [AT_RESET]
    own = library.run(run_named(library, "random"))
    floors = floors_of(results_of_run(own), library, mode="non-conversation", own=own.path)
    assert [floor.agent for floor in floors] == ["noop"]


def test_a_floor_says_how_many_scenarios_it_is_known_for(library: LibraryStore) -> None:
    environment = library.read_environment("lending-desk")
    edited = scenario(environment, 2, task="Something else.")
    library.replace_scenarios("lending-desk", [scenario(environment, 1), edited])
    results = oracle(library)

    async def play() -> None:
        with open_library(library.path) as opened:
            await run_rollout(opened, RolloutSettings(agent="random", samples=2))

    shutil.rmtree(library.run(run_named(library, "noop")).path)
    anyio.run(play)
    floors = {floor.agent: floor for floor in floors_of(results, library, mode="non-conversation")}
    assert floors["random"].scenarios == 1
    assert (floors["noop"].source, floors["noop"].scenarios) == (AT_RESET, 2)


@pytest.mark.anyio
async def test_where_nobody_looked_at_the_reset_proofs_are_read(library: LibraryStore) -> None:
    import dataclasses

    await run_prove(library.path)
    results = [dataclasses.replace(result, idle={}) for result in oracle(library)]
    for agent in ("noop", "random"):
        shutil.rmtree(library.run(run_named(library, agent)).path)
    assert floors_of(results, None, mode="non-conversation") == ()
    (floor,) = floors_of(results, library, mode="non-conversation")
    assert (floor.source, floor.scenarios) == (PROOFS, 2)
    assert floor.rewards["fraction"].value == pytest.approx(1 / 3)


def test_levels_are_those_of_the_scenarios_that_have_one(library: LibraryStore) -> None:
    assert levels_of(library) == {("lending-desk", "lending-desk-s001"): "hard"}
