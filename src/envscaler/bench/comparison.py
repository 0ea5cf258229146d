"""`compare_bench`: whether one run of a benchmark is better than another; refused where their settings differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from envscaler.bench.outcomes import outcomes_of
from envscaler.bench.report import known_of, record_of, unlike
from envscaler.errors import UsageError
from envscaler.record import Record
from envscaler.rollout.comparison import Comparison, compare
from envscaler.rollout.results import Result
from envscaler.store import RunStore


class BenchComparison(Record):
    """A second run against a first one."""

    comparison: Comparison
    """By the benchmark's own score; what it calls environments are groups of tasks made of the same one."""
    differences: str | None = None
    """How they were played differently, where it was compared all the same."""


def compare_bench(first: Path, second: Path, *, force: bool = False) -> BenchComparison:
    """Compare two runs by a paired test over the tasks that both played.

    Raises:
        UsageError: if they are not runs of one benchmark, or, unless forced, were played under different settings.
    """
    runs = [RunStore.open(folder) for folder in (first, second)]
    ours, theirs = (record_of(run) for run in runs)
    assert ours.played is not None
    assert theirs.played is not None
    if ours.played.benchmark != theirs.played.benchmark:
        raise UsageError(
            f"{first} is a run of {ours.played.benchmark}, {second} one of {theirs.played.benchmark}; "
            "compare runs of one benchmark"
        )
    differences = unlike(ours, theirs)
    if differences is not None and not force:
        raise UsageError(f"not comparable: {differences}; --force compares them all the same")
    results = [_grouped(run) for run in runs]
    return BenchComparison(comparison=compare(results[0], results[1], "solved"), differences=differences)


def _grouped(run: RunStore) -> list[Result]:
    """The results with groups in place of environments: variants of one task are alike, parts are not drawn."""
    record = record_of(run)
    _, installed = known_of(record)
    tasks = {task.id: task for task in installed.tasks} if installed is not None else {}
    outcomes = outcomes_of(run, tasks, of_library=record.library is not None)
    return [replace(outcome.result, env_id=outcome.group) for outcome in outcomes]
