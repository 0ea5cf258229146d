"""`run_replay`: plays recorded episodes again, of a published file or of a run, and tells what came out differently.

What is compared within a published episode stands in `replay_released`; an episode of our own goes through the very
environment that it was played in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from envscaler.cores import usable_cores
from envscaler.engine import NullProgress, Progress, bounded_map
from envscaler.env import AsyncToolEnv, Homes, ObservationStyle, ResetChecks, Shelf, observations_of
from envscaler.errors import EnvScalerError, ProgramError, StoreError, UsageError
from envscaler.messages import ToolMessage, as_carried_out
from envscaler.released import (
    Episode,
    entries,
    env_id_of,
    episode_of,
    played_scenario,
    published_episode,
    published_trajectory,
)
from envscaler.rollout.replay_released import replay_episode
from envscaler.rollout.replay_report import Explanation, ReplayedEpisode, ReplayReport, summarized
from envscaler.rollout.report import RunRecord
from envscaler.rollout.scores import UNFINISHED
from envscaler.sandbox import Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue
from envscaler.store import RunStore
from envscaler.trajectory import StopReason, Trajectory

STAGE = "replay"
_NAMED = 5
"""Environments that are named where a library lacks many."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One recorded episode with what it was played in."""

    where: str
    skeleton: EnvSkeleton
    scenario: Scenario
    episode: Episode | None
    """A published episode; None: one of ours."""
    trajectory: Trajectory | None = None


async def run_replay(library: Shelf, source: Path, progress: Progress | None = None) -> ReplayReport:
    """Play the episodes of a published file or of a run again.

    Args:
        library: has the programs, and the scenarios of episodes that do not bring their own; how far apart they are
            played is its `isolation`.
        source: a file of published episodes, or the folder of a run.

    Raises:
        UsageError: if the library has none of the environments.
        StoreError: if `source` cannot be read.
        SandboxError: if the machinery fails.
    """
    progress = progress if progress is not None else NullProgress()
    skipped: list[str] = []
    absent: Counter[str] = Counter()
    jobs = _jobs(library, source, skipped.append, absent)
    style, reset_checks = _style(source), ResetChecks()
    replayed: list[ReplayedEpisode] = []
    progress.stage(STAGE, None)
    async with Sandbox(isolation=library.isolation) as sandbox:
        homes = Homes(sandbox, library.isolation, library.store.cache_dir)

        async def one(job: _Job) -> ReplayedEpisode | str:
            try:
                await homes.settle(job.skeleton, job.scenario)
                if job.episode is not None:
                    return await replay_episode(job.episode, job.skeleton, job.scenario, sandbox)
                assert job.trajectory is not None
                return await _replay_own(job.trajectory, job.skeleton, job.scenario, sandbox, style, reset_checks)
            except ProgramError as error:
                return f"{job.where}: the program cannot be used: {error}"

        async with aclosing(bounded_map(one, jobs, limit=2 * usable_cores())) as ended:
            async for outcome in ended:
                progress.advance(STAGE)
                if isinstance(outcome, str):
                    skipped.append(outcome)
                else:
                    replayed.append(outcome)
    lacking = [f"{env_id} ({number:,})" for env_id, number in absent.items()]
    if lacking:
        named = f"{', '.join(lacking[:_NAMED])}{', …' if len(lacking) > _NAMED else ''}"
        if not replayed and not skipped:
            raise UsageError(
                f"{library.path} has none of the environments that {source} was played in ({named}); "
                "name the library that has them with --library"
            )
        skipped.append(f"{library.path} lacks environments, with so many episodes each: {named}")
    return ReplayReport(
        source=source,
        library=library.path,
        summary=summarized(replayed),
        episodes=tuple(replayed),
        skipped=tuple(skipped),
        kept_apart=homes.apart,
    )


# -- what is there to be played -----------------------------------------------------------------------------


class _NoEnvironment(StoreError):
    """The library has not the environment that an episode was played in."""

    def __init__(self, env_id: str, where: str) -> None:
        super().__init__(f"{where}: there is no environment {env_id!r} in the library")
        self.env_id = env_id


def _jobs(library: Shelf, source: Path, complain: Callable[[str], None], absent: Counter[str]) -> Iterator[_Job]:
    """What can be played.

    Args:
        absent: counts the episodes of each environment that the library has not; of them there is much to tell once.
    """
    return (_jobs_of_run if source.is_dir() else _jobs_of_file)(library, source, complain, absent)


def _jobs_of_file(library: Shelf, path: Path, complain: Callable[[str], None], absent: Counter[str]) -> Iterator[_Job]:
    for entry in entries(path, complain):
        try:
            yield _released_job(library, entry.value, entry.where)
        except _NoEnvironment as fault:
            absent[fault.env_id] += 1
        except (StoreError, UsageError) as fault:
            complain(str(fault))


def _jobs_of_run(library: Shelf, folder: Path, complain: Callable[[str], None], absent: Counter[str]) -> Iterator[_Job]:
    for trajectory in RunStore.open(folder).trajectories(complain):
        try:
            job = _own_job(library, trajectory)
        except _NoEnvironment as fault:
            absent[fault.env_id] += 1
            continue
        except EnvScalerError as fault:
            told = str(fault)
            complain(told if told.startswith(f"{trajectory.id}: ") else f"{trajectory.id}: {told}")
            continue
        if isinstance(job, str):
            complain(f"{trajectory.id}: {job}")
        else:
            yield job


def _released_job(library: Shelf, value: JsonValue, where: str) -> _Job:
    skeleton = _skeleton(library, env_id_of(value, where), where)
    episode = episode_of(published_episode(value, where), where)
    scenario = _scenario(library, skeleton.id, episode.task_id)
    return _Job(where, skeleton, played_scenario(episode, skeleton, scenario, where), episode)


def _own_job(library: Shelf, trajectory: Trajectory) -> _Job | str:
    if trajectory.world != "scenario":
        return f"the world that was played is {trajectory.world}, which has no recorded program"
    skeleton = _skeleton(library, trajectory.env_id, trajectory.id)
    scenario = _scenario(library, skeleton.id, trajectory.scenario_id)
    if trajectory.released is not None:
        return _released_job(library, published_trajectory(trajectory, skeleton, scenario), trajectory.id)
    if trajectory.stop in UNFINISHED:
        return f"the machinery cut it short ({trajectory.stop.value}): there is nothing to compare"
    if scenario is None:
        return f"{skeleton.id} has no scenario {trajectory.scenario_id!r} any more"
    return _Job(trajectory.id, skeleton, scenario, None, trajectory)


def _skeleton(library: Shelf, env_id: str, where: str) -> EnvSkeleton:
    if env_id not in library.env_ids:
        raise _NoEnvironment(env_id, where)
    try:
        return library.skeleton(env_id)
    except UsageError as fault:
        raise StoreError(f"{where}: {fault}") from fault


def _scenario(library: Shelf, env_id: str, scenario_id: str) -> Scenario | None:
    return next((scenario for scenario in library.scenarios(env_id) if scenario.id == scenario_id), None)


def _style(source: Path) -> ObservationStyle | None:
    record = RunStore(source).read_run(RunRecord) if source.is_dir() else None
    return record.settings.observations if record is not None else None


# -- episodes of our own ------------------------------------------------------------------------------------


async def _replay_own(
    trajectory: Trajectory,
    skeleton: EnvSkeleton,
    scenario: Scenario,
    sandbox: Sandbox,
    style: ObservationStyle | None,
    reset_checks: ResetChecks,
) -> ReplayedEpisode:
    observations = equal = 0
    differences: list[str] = []
    states_differ: int | None = None
    env = AsyncToolEnv(
        skeleton,
        scenario,
        sandbox,
        seed=trajectory.seed,
        observations=style if style is not None else observations_of(skeleton),
        reset_checks=reset_checks,
    )
    try:
        await env.reset()
        for number, step in enumerate(trajectory.steps, 1):
            for call, seen in step.calls_made:
                again = await env.carry_out(as_carried_out(call, seen))
                observations += 1
                if (again.content, again.is_error) == (seen.content, seen.is_error):
                    equal += 1
                else:
                    differences.append(_difference(number, seen, again))
            if step.state_digest is not None and step.state_digest != env.digest and states_differ is None:
                states_differ = number
        verdict = await env.verify()
    finally:
        await env.close()
    fraction = verdict.reward("fraction")
    recorded = trajectory.reward("fraction")
    same = recorded == fraction
    changed = _changes(trajectory, skeleton, scenario, states_differ)
    finished = trajectory.stop in (StopReason.FINISHED, StopReason.USER_STOPPED)
    return ReplayedEpisode(
        env_id=trajectory.env_id,
        task_id=trajectory.scenario_id,
        model=trajectory.model if trajectory.model is not None else trajectory.agent,
        reward_recorded=recorded,
        reward_authors_rule=None if fraction is None else round(fraction, 4) if finished else 0.0,
        fraction=fraction,
        gained=verdict.reward("gained"),
        solved=verdict.solved,
        explanation=Explanation(evidence=changed if differences or not same or states_differ is not None else ""),
        reward_equal=same,
        observations=observations,
        observations_equal=equal,
        observations_equal_up_to_ids=equal,
        differences=tuple(differences),
    )


def _changes(trajectory: Trajectory, skeleton: EnvSkeleton, scenario: Scenario, states_differ: int | None) -> str:
    if trajectory.env_digest != skeleton.digest:
        return f"environment {skeleton.id} is no longer the one that was played"
    if trajectory.scenario_digest != scenario.digest:
        return f"scenario {scenario.id} is no longer the one that was played"
    if states_differ is not None:
        return f"from step {states_differ} on the state is another one than recorded"
    return "environment and scenario are the ones that were played"


def _difference(number: int, seen: ToolMessage, again: ToolMessage) -> str:
    pairs = enumerate(zip_longest(seen.content, again.content))
    place = next((index for index, (one, other) in pairs if one != other), 0)
    start = max(0, place - 60)
    return (
        f"step {number}, {seen.name}: recorded {seen.content[start : start + 160]!r}, "
        f"replayed {again.content[start : start + 160]!r}"
    )
