"""What is known of benchmarks beside their own files: tasks that are wrong, and results that others published."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml

from envscaler.bench.installation import Installed
from envscaler.record import Record

OWN_SOURCE = "found when the benchmark was installed"


class Faulty(Record):
    """Why a task is wrong."""

    task: str
    reason: str
    source: str


class PublishedRow(Record):
    """One model's results."""

    model: str
    scores: dict[str, float]
    """By column, in percent."""
    source: str


def faulty_tasks(benchmark: str, installed: Installed | None) -> dict[str, Faulty]:
    """The tasks of a benchmark that are known to be wrong, by id."""
    out: dict[str, Faulty] = {}
    for entry in _file("faulty.yaml"):
        if benchmark in entry["benchmarks"]:
            for task in entry["tasks"]:
                out[task] = Faulty(task=task, reason=entry["reason"], source=entry["source"])
    for task, found in (installed.recorded if installed is not None else {}).items():
        reasons = [
            *([f"its own solution does not pass ({found.reason})"] if not found.passes else []),
            *(["calls of its own solution fail"] if found.raised or found.failed else []),
            *(["its own solution calls functions that are not there yet"] if found.early else []),
            *(["its solution is recorded for another number of user messages"] if found.turns_differ else []),
        ]
        if reasons and task not in out:
            out[task] = Faulty(task=task, reason="; ".join(reasons), source=OWN_SOURCE)
    return out


def published(column: str) -> tuple[PublishedRow, ...]:
    """Published results that have a number in a column."""
    return tuple(
        PublishedRow(model=model, scores=dict(zip(table["columns"], scores, strict=True)), source=table["source"])
        for table in _file("published.yaml")
        if column in table["columns"]
        for model, scores in table["rows"].items()
    )


@cache
def _file(name: str) -> Any:
    return yaml.safe_load(resources.files("envscaler.bench").joinpath(name).read_text(encoding="utf-8"))
