"""`BenchSettings`: everything that decides which tasks of a benchmark are played and how."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envscaler.bench.catalogue import Benchmark
from envscaler.bench.installation import Installed
from envscaler.bench.tasks import BenchTask
from envscaler.errors import UsageError
from envscaler.rollout.report import Played
from envscaler.rollout.settings import RolloutSettings

RUNS = "benchmarks"
"""Folder in the working folder that runs lie in unless others are named."""


def rollout_settings(benchmark: Benchmark, settings: RolloutSettings) -> RolloutSettings:
    """The settings with what a benchmark has in place of our defaults.

    Raises:
        UsageError: for a part that it does not have.
    """
    for split in settings.env_ids or ():
        if split not in benchmark.splits:
            raise UsageError(f"{benchmark.name} has no part {split!r}; its parts are {', '.join(benchmark.splits)}")
    limit = settings.step_limit if settings.step_limit is not None else benchmark.step_limit
    own = {
        "step_limit": limit,
        "mode": "conversation" if benchmark.conversation else "non-conversation",
        "parallel_calls": settings.parallel_calls and benchmark.parallel_calls,
    }
    return settings.model_copy(update=own)


def tasks_asked_for(
    benchmark: Benchmark,
    installed: Installed,
    settings: RolloutSettings,
    names: tuple[str, ...] = (),
    options: Mapping[str, str] | None = None,
) -> list[BenchTask]:
    """The tasks of a run in the benchmark's order: some of each part, or those named.

    Args:
        options: the benchmark's own that are in force; they may choose among its tasks.

    Raises:
        UsageError: for a task that there is not.
    """
    there = [task for task in installed.tasks if task.fits(options or {})]
    known = {task.id: task for task in there}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"{benchmark.name} has no task {unknown[0]!r}; they are named like {next(iter(known))}")
    out: list[BenchTask] = []
    for split in settings.env_ids or benchmark.splits:
        own = [task for task in there if task.split == split and (not names or task.id in names)]
        out += own[: settings.scenarios_per_env]
    if not out:
        raise UsageError(f"no task of {benchmark.name} is asked for")
    return out


def played_of(benchmark: Benchmark, installed: Installed, options: dict[str, str]) -> Played:
    """What pins the benchmark in a run's record."""
    return Played(benchmark=benchmark.name, packages=benchmark.packages, digest=installed.digest, options=dict(options))


def cache_folder(runs: Path) -> Path:
    """Where replies of models and what is known of endpoints are kept, beside the runs."""
    return runs / ".cache"
