"""`Outcome`: what one episode of a benchmark came to, read off its trajectory, with the task that it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from envscaler.bench.tasks import BenchTask
from envscaler.bench.world import RECORDED, VIOLATION
from envscaler.rollout.results import Result, result_of
from envscaler.store import RunStore


@dataclass(frozen=True)
class Outcome:
    """One episode."""

    task: str
    split: str
    group: str
    result: Result
    scores: Mapping[str, float]

    @property
    def judged(self) -> bool:
        """Whether it stands in scores: whatever the agent did it does, but for failures of the machinery."""
        return self.result.counts and self.result.rewards["solved"] is not None

    @property
    def passed(self) -> bool:
        """By the benchmark's own checker."""
        return self.result.rewards["solved"] == 1.0

    @property
    def violations(self) -> dict[str, int]:
        """What the agent did that is against the rules of the benchmark, and that its checker does not see."""
        return {name.removeprefix(VIOLATION): int(n) for name, n in self.scores.items() if name.startswith(VIOLATION)}

    @property
    def recorded(self) -> dict[str, int]:
        """Failures of the recorded solution, by kind."""
        return {name.removeprefix(RECORDED): int(n) for name, n in self.scores.items() if name.startswith(RECORDED)}


def outcomes_of(run: RunStore, tasks: Mapping[str, BenchTask]) -> list[Outcome]:
    """The episodes of a run in its order; of several of one sample, as a resumed run can hold, the last one.

    Args:
        tasks: by id; without its task an episode is a group of its own.
    """
    last: dict[tuple[str, int], Outcome] = {}
    for trajectory in run.trajectories():
        task = tasks.get(trajectory.scenario_id)
        last[trajectory.scenario_id, trajectory.sample] = Outcome(
            task=trajectory.scenario_id,
            split=trajectory.env_id,
            group=task.group if task is not None else trajectory.scenario_id,
            result=result_of(trajectory),
            scores=trajectory.scores,
        )
    return list(last.values())
