"""`Result`: what one episode brings to scores and comparisons, read off its trajectory, and the results of a run.

What they come to together is the business of `scores` and `comparison`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from envscaler.scenario import CheckKind
from envscaler.skeleton import ModelUse
from envscaler.store import RunStore
from envscaler.trajectory import CheckResult, RewardMode, StopReason, Trajectory, Verdict

REWARD_MODES: tuple[RewardMode, ...] = get_args(RewardMode)

UNFINISHED = frozenset({StopReason.INFRASTRUCTURE, StopReason.BUDGET})
"""Ends that say nothing about the agent; such episodes are played again when the run is resumed."""

Rewards = dict[RewardMode, float | None]
Place = tuple[str, str]
"""Environment and scenario."""


@dataclass(frozen=True, slots=True)
class Result:
    """One episode, without what was said and done in it."""

    env_id: str
    scenario_id: str
    scenario_digest: str
    sample: int
    stop: StopReason
    masked: bool
    rewards: Rewards
    """None where there is no verdict or the mode is undefined."""
    idle: Rewards
    """What doing nothing earns in the same scenario; empty where nobody tried what holds at reset."""
    steps: int
    calls: int
    invalid_calls: int
    slips: tuple[str, ...]
    """Kinds of the agent's slips, one each."""
    user_slips: tuple[str, ...]
    use: tuple[ModelUse, ...]

    @property
    def place(self) -> Place:
        return self.env_id, self.scenario_id

    @property
    def counts(self) -> bool:
        """Whether it says something about the agent: it came to its end, and nobody else spoiled it."""
        return self.stop not in UNFINISHED and not self.masked


def result_of(trajectory: Trajectory) -> Result:
    """What an episode brings to scores."""
    seen = [observation for step in trajectory.steps for observation in step.observations]
    user = trajectory.user
    return Result(
        env_id=trajectory.env_id,
        scenario_id=trajectory.scenario_id,
        scenario_digest=trajectory.scenario_digest,
        sample=trajectory.sample,
        stop=trajectory.stop,
        masked=trajectory.masked is not None,
        rewards={mode: trajectory.reward(mode) for mode in REWARD_MODES},
        idle=idle_rewards(trajectory.verdict.checks) if trajectory.verdict is not None else {},
        steps=len(trajectory.steps),
        calls=len(seen),
        invalid_calls=sum(observation.is_error for observation in seen),
        slips=tuple(slip.kind for step in trajectory.steps for slip in step.slips),
        user_slips=tuple(slip.kind for slip in user.slips) if user is not None else (),
        use=tuple(trajectory.use.values()),
    )


def idle_rewards(checks: Sequence[CheckResult]) -> Rewards:
    """What doing nothing earns: the rewards of what held at reset; empty where that was not tried for every check."""
    held = tuple((check.kind, check.held_at_reset) for check in checks)
    return dict(_idle(held)) if all(one is not None for _, one in held) else {}


@lru_cache(maxsize=4096)
def _idle(held: tuple[tuple[CheckKind | None, bool | None], ...]) -> Rewards:
    checks = (CheckResult(description="", kind=kind, passed=bool(one), held_at_reset=one) for kind, one in held)
    verdict = Verdict(checks=tuple(checks))
    return {mode: verdict.reward(mode) for mode in REWARD_MODES}


def results_of_run(run: RunStore) -> list[Result]:
    """The results of a run in its order. Of several episodes of one sample, as a resumed run can hold, the last one."""
    last = {(result.place, result.sample): result for result in map(result_of, run.trajectories())}
    return list(last.values())
