"""`SftFilters`: which episodes are worth learning from, as options say it.

What an episode alone tells is decided here, what takes the others too (`best`, `per_env` …) by `selection`.

Source: paper section 5, SFT: trajectories are kept when finished and well formed; the other filters are ours.
"""

from __future__ import annotations

from pydantic import Field

from envscaler.export.messages import format_fault
from envscaler.record import Record
from envscaler.rollout.scores import UNFINISHED
from envscaler.trajectory import RewardMode, StopReason, Trajectory

_FINISHED = frozenset({StopReason.FINISHED, StopReason.USER_STOPPED})


class SftFilters(Record):
    """Which trajectories are kept. Those that the machinery cut short never are."""

    well_formed: bool = True
    """Only conversations in which each call has its observation, tools exist, and a message ends it."""
    finished: bool = True
    """Only episodes that the agent or the user ended."""
    masked: bool = False
    """Also episodes that say nothing about the agent (their simulated user gave the task away, say)."""
    slips: bool = True
    """Also episodes with replies whose form was wrong and was not put right."""
    user_slips: bool = True
    """Also episodes in which the simulated user did not do as it was told."""
    min_steps: int | None = Field(default=None, ge=0)
    """The agent's turns at least."""
    max_steps: int | None = Field(default=None, ge=1)
    """The agent's turns at most."""
    reward_at_least: float | None = Field(default=None, ge=0.0, le=1.0)
    """Only episodes with such a reward; one without a reward is dropped."""
    reward_mode: RewardMode = "fraction"
    """Mode of that reward, and of what is best."""
    solved: bool = False
    """Only episodes in which every check holds."""
    distinct: bool = False
    """Of episodes of one scenario with the same calls, but for created ids and times, only the first."""
    best: int | None = Field(default=None, ge=1)
    """Only so many episodes of each scenario: those with the highest rewards, of equal ones the shortest."""
    per_env: int | None = Field(default=None, ge=1)
    """Only so many episodes of each environment, drawn with `seed`."""
    seed: int = 0
    """Seed of that draw."""
    max_tokens_row: int | None = Field(default=None, ge=1)
    """Only rows of so many tokens."""

    @property
    def compares(self) -> bool:
        """Whether an episode is kept or not by what others are like, so that all are looked at first."""
        return self.best is not None or self.per_env is not None

    def fault(self, trajectory: Trajectory) -> str | None:
        """Why a trajectory is dropped, the same words for the same reason; None when it is kept."""
        if trajectory.stop in UNFINISHED:
            return f"cut short: {trajectory.stop.value}"
        if trajectory.masked is not None and not self.masked:
            return f"masked: {trajectory.masked}"
        if self.finished and trajectory.stop not in _FINISHED:
            return f"not finished: {trajectory.stop.value}"
        if self.well_formed and (fault := format_fault(trajectory)) is not None:
            return f"format: {fault}"
        if not self.slips and any(not slip.repaired for step in trajectory.steps for slip in step.slips):
            return "a slip that was not put right"
        if not self.user_slips and trajectory.user is not None and trajectory.user.slips:
            return "a slip of the simulated user"
        return self._by_length(trajectory) or self._by_reward(trajectory)

    def _by_length(self, trajectory: Trajectory) -> str | None:
        steps = len(trajectory.steps)
        if self.min_steps is not None and steps < self.min_steps:
            return f"fewer than {self.min_steps} steps"
        if self.max_steps is not None and steps > self.max_steps:
            return f"more than {self.max_steps} steps"
        return None

    def _by_reward(self, trajectory: Trajectory) -> str | None:
        if self.reward_at_least is not None:
            reward = trajectory.reward(self.reward_mode)
            if reward is None:
                return f"no {self.reward_mode} reward"
            if reward < self.reward_at_least:
                return f"{self.reward_mode} reward below {self.reward_at_least}"
        if self.solved and (trajectory.verdict is None or not trajectory.verdict.solved):
            return "not solved"
        return None
