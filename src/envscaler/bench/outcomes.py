"""`Outcome`: what one episode of a benchmark came to, read off its trajectory, with the task that it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from envscaler.bench.tasks import BenchTask, scenario_task
from envscaler.bench.world import RECORDED, VIOLATION
from envscaler.rollout.results import Result, result_of
from envscaler.store import RunStore

ALL = "all"
"""The part that scenarios are told under whose library does not say any more what it held out."""


@dataclass(frozen=True)
class Outcome:
    """One episode."""

    task: str
    split: str
    group: str
    result: Result
    scores: Mapping[str, float]
    replies: int = 0
    """The agent's replies."""
    thought: int = 0
    """Those of them with reasoning."""

    def further(self, name: str) -> float | None:
        """Another score than the benchmark's own: one that it has told, or a reward; None where there is none."""
        if name in self.scores:
            return self.scores[name]
        return next((value for mode, value in self.result.rewards.items() if mode == name), None)

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


def outcomes_of(run: RunStore, tasks: Mapping[str, BenchTask], *, of_library: bool = False) -> list[Outcome]:
    """The episodes of a run in its order; of several of one sample, as a resumed run can hold, the last one.

    Args:
        tasks: by id; without its task an episode is a group of its own.
        of_library: whether the run is one of scenarios, whose ids are their environments' own.
    """
    last: dict[tuple[str, int], Outcome] = {}
    for trajectory in run.trajectories():
        place = (trajectory.env_id, trajectory.scenario_id)
        name = scenario_task(*place) if of_library else trajectory.scenario_id
        task = tasks.get(name)
        last[name, trajectory.sample] = Outcome(
            task=name,
            split=task.split if task is not None else ALL if of_library else trajectory.env_id,
            group=task.group if task is not None else trajectory.env_id if of_library else name,
            result=result_of(trajectory),
            scores=trajectory.scores,
            replies=len(trajectory.steps),
            thought=sum(bool(step.assistant.reasoning) for step in trajectory.steps),
        )
    return list(last.values())
