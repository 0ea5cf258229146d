"""`BenchTask`: one task of a benchmark, as far as this side of the worker has to know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envscaler.record import Record
from envscaler.scenario import SolutionCall


class BenchTask(Record):
    """One task. What is said in it and what is right is the worker's business."""

    id: str
    split: str
    """The part of the benchmark that it belongs to; scores are told for each."""
    group: str
    """What it has in common with tasks that are made of the same one; intervals draw groups anew."""
    digest: str
    """Pins what an episode and its score depend on."""
    gold: tuple[tuple[SolutionCall, ...], ...] | None = None
    """The recorded solution for each user message; None where there is none that can be played."""
    gold_said: tuple[str, ...] = ()
    """What the recorded solution says at the end of each turn; empty: nothing that counts."""
    turns: int | None = None
    """User messages at least; None: not known before."""
    only: dict[str, str] = {}
    """Options of the benchmark with which alone it is played."""

    def fits(self, options: Mapping[str, str]) -> bool:
        """Whether it is played with these options."""
        return all(options.get(name) == value for name, value in self.only.items())


def scenario_task(env_id: str, scenario_id: str) -> str:
    """The name that a scenario of a library has as a task."""
    return f"{env_id}/{scenario_id}"


def task_of(told: Mapping[str, Any]) -> BenchTask:
    """The task as a worker describes it."""
    gold = told.get("gold")
    return BenchTask(
        id=told["id"],
        split=told["split"],
        group=told["group"],
        digest=told["digest"],
        gold=None if gold is None else tuple(tuple(SolutionCall(**call) for call in turn) for turn in gold),
        gold_said=tuple(told.get("gold_said", ())),
        turns=told.get("turns"),
        only=told.get("only", {}),
    )
