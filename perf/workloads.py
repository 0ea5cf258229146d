"""`Workload`: a program, a state to begin in, and calls to make: the authors' released programs, and one of our own.

The released ones are external data (`ENVSCALER_TEST_DATA`, default `../shared`); without them only our own are there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from envscaler.probe import valid_arguments
from envscaler.released import Episode, entries, env_id_of, episode_of, published_episode, scenario_of, skeleton_of
from envscaler.sandbox import Arguments, Program
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import State, encode
from perf.desk import calls_of, state_of

RELEASE = Path(os.environ.get("ENVSCALER_TEST_DATA") or Path(__file__).parents[1] / ".." / "shared").resolve() / (
    "data/envscaler_release"
)
_PROBED_CALLS = 20
_SMALL, _LARGE = 28, 1540
_DESK = Program(source=Path(__file__).with_name("desk.py").read_text(encoding="utf-8"), class_name="LendingDesk")


@dataclass(frozen=True)
class Workload:
    """What one episode is made of."""

    name: str
    program: Program
    state: State
    calls: tuple[tuple[str, Arguments], ...]
    checks: tuple[str, ...] = ()
    """Sources of check functions over the state that the calls leave."""

    @property
    def state_kb(self) -> float:
        """Size of the state as JSON."""
        return len(encode(self.state)) / 1000


def desk(*, large: bool = False) -> Workload:
    """Our own program, on a state of about 4 or 219 KB; its 30 calls leave the state as it was."""
    size = _LARGE if large else _SMALL
    return Workload("desk, large" if large else "desk", _DESK, state_of(size), tuple(calls_of(size, 30)))


@lru_cache(maxsize=1)
def released() -> tuple[Workload, ...]:
    """One workload for each released program that has a state: the longest recorded episode of it, else calls that
    `probe` makes on the state of a scenario; empty where the data is not there."""
    if not RELEASE.is_dir():
        return ()
    skeletons = {skeleton.id: skeleton for skeleton in _skeletons()}
    episodes, scenarios = _episodes(), _scenarios(skeletons)
    found = [_recorded(skeleton, episodes[key]) for key, skeleton in skeletons.items() if key in episodes]
    found += [
        _probed(skeleton, scenarios[key])
        for key, skeleton in skeletons.items()
        if key in scenarios and key not in episodes
    ]
    return tuple(found)


def _skeletons() -> Iterator[EnvSkeleton]:
    for entry in entries(RELEASE / "environments.json", _refuse):
        yield skeleton_of(entry.value, entry.where, source="environments.json", key=entry.key)


def _episodes() -> dict[str, Episode]:
    longest: dict[str, Episode] = {}
    for entry in entries(RELEASE / "episodes.jsonl", _refuse):
        episode = episode_of(published_episode(entry.value, entry.where), entry.where)
        if episode.env_id not in longest or episode.calls > longest[episode.env_id].calls:
            longest[episode.env_id] = episode
    return longest


def _scenarios(skeletons: dict[str, EnvSkeleton]) -> dict[str, Scenario]:
    first: dict[str, Scenario] = {}
    for entry in entries(RELEASE / "scenarios.json", _refuse):
        skeleton = skeletons[env_id_of(entry.value, entry.where)]
        if skeleton.id not in first:
            first[skeleton.id] = scenario_of(
                entry.value,
                entry.where,
                env_digest=skeleton.digest,
                class_name=skeleton.class_name,
                source="scenarios.json",
            )
    return first


def _recorded(skeleton: EnvSkeleton, episode: Episode) -> Workload:
    calls = [(step.call.name, step.call.arguments) for step in episode.steps if step.called and step.call is not None]
    return Workload(
        skeleton.id,
        Program(skeleton.source, skeleton.class_name),
        episode.initial_state or {},
        tuple(calls),
        tuple(check.source for check in episode.checks or ()),
    )


def _probed(skeleton: EnvSkeleton, scenario: Scenario) -> Workload:
    rng = Random(0)
    calls = []
    for index in range(_PROBED_CALLS):
        tool = skeleton.tools[index % len(skeleton.tools)]
        calls.append((tool.name, valid_arguments(tool, scenario.initial_state, skeleton.entities, rng)))
    return Workload(
        skeleton.id,
        Program(skeleton.source, skeleton.class_name),
        scenario.initial_state,
        tuple(calls),
        tuple(check.source for check in scenario.checks),
    )


def _refuse(complaint: str) -> None:
    raise ValueError(complaint)
