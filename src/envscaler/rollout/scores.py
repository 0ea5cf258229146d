"""Scores of trajectories: means of rewards in each mode, solved rate, stop reasons, tokens; in all and by environment.

Episodes that the machinery cut short are counted and left out of every mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import fsum
from typing import get_args

from envscaler.record import Record
from envscaler.skeleton import ModelUse
from envscaler.trajectory import RewardMode, StopReason, Trajectory

REWARD_MODES: tuple[RewardMode, ...] = get_args(RewardMode)

UNFINISHED = frozenset({StopReason.INFRASTRUCTURE, StopReason.BUDGET})
"""Ends that say nothing about the agent; such episodes are played again when the run is resumed."""


class Mean(Record):
    """A mean and how many values it is over."""

    value: float | None
    """None without values."""
    count: int


class Scores(Record):
    """What a set of trajectories is worth."""

    episodes: int = 0
    """All, the unfinished ones included."""
    judged: int = 0
    """Those with a verdict over at least one check."""
    stops: dict[str, int] = {}
    """Number of episodes by stop reason."""
    rewards: dict[RewardMode, Mean] = {}
    solved_rate: float | None = None
    """Share of the judged episodes in which every check holds."""
    mean_steps: float | None = None
    """Of the finished episodes."""
    calls: int = 0
    """Tool calls of the finished episodes."""
    invalid_calls: int = 0
    """Those of them that were refused or raised."""
    use: ModelUse = ModelUse()
    """Tokens and cost of the replies used; a cost of None means unknown."""

    @property
    def invalid_call_rate(self) -> float | None:
        """Share of tool calls that were refused or raised; None without calls."""
        return self.invalid_calls / self.calls if self.calls else None


class ScoreTable(Record):
    """Scores together and by environment."""

    total: Scores = Scores()
    environments: dict[str, Scores] = {}


def scores(trajectories: Iterable[Trajectory]) -> ScoreTable:
    """Score a stream of trajectories, in any order."""
    total = _Tally()
    by_env: dict[str, _Tally] = {}
    for trajectory in trajectories:
        total.add(trajectory)
        by_env.setdefault(trajectory.env_id, _Tally()).add(trajectory)
    return ScoreTable(
        total=total.scores(), environments={env_id: tally.scores() for env_id, tally in sorted(by_env.items())}
    )


class _Tally:
    def __init__(self) -> None:
        self.stops: Counter[str] = Counter()
        self.rewards: dict[RewardMode, list[float]] = {mode: [] for mode in REWARD_MODES}
        self.steps: list[int] = []
        self.calls = 0
        self.invalid_calls = 0
        self.use: list[ModelUse] = []

    def add(self, trajectory: Trajectory) -> None:
        self.stops[trajectory.stop.value] += 1
        self.use += trajectory.use.values()
        if trajectory.stop in UNFINISHED:
            return
        for mode in REWARD_MODES:
            reward = trajectory.reward(mode)
            if reward is not None:
                self.rewards[mode].append(reward)
        self.steps.append(len(trajectory.steps))
        for step in trajectory.steps:
            self.calls += len(step.observations)
            self.invalid_calls += sum(observation.is_error for observation in step.observations)

    def scores(self) -> Scores:
        means = {
            # fsum is exact, so that the mean does not depend on the order in which episodes ended.
            mode: Mean(value=fsum(values) / len(values) if values else None, count=len(values))
            for mode, values in self.rewards.items()
        }
        return Scores(
            episodes=self.stops.total(),
            judged=means["fraction"].count,
            stops=dict(sorted(self.stops.items())),
            rewards=means,
            solved_rate=means["solved"].value,
            mean_steps=sum(self.steps) / len(self.steps) if self.steps else None,
            calls=self.calls,
            invalid_calls=self.invalid_calls,
            use=_total(self.use),
        )


def _total(parts: list[ModelUse]) -> ModelUse:
    parts = [part for part in parts if part.calls]
    costs = [part.cost_usd for part in parts]
    return ModelUse(
        calls=sum(part.calls for part in parts),
        input_tokens=sum(part.input_tokens for part in parts),
        cached_input_tokens=sum(part.cached_input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        cost_usd=None if None in costs else fsum(cost for cost in costs if cost is not None),
    )
