"""`export_sft`: the trajectories of a run that are worth learning from, as rows of a training file.

Source: paper section 5, SFT: trajectories are kept when finished and well formed; the other filters are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from envscaler.export.messages import Row, chat_row, format_fault
from envscaler.record import Record
from envscaler.rollout.scores import UNFINISHED
from envscaler.rollout.standing import Standing
from envscaler.store import RunStore, require_free, write_atomic
from envscaler.store.atomic import json_line, utf8
from envscaler.trajectory import RewardMode, StopReason, Trajectory

_FINISHED = frozenset({StopReason.FINISHED, StopReason.USER_STOPPED})


class SftFilters(Record):
    """Which trajectories are kept. Those that the machinery cut short never are."""

    well_formed: bool = True
    """Only conversations in which each call has its observation, tools exist, and a message ends it."""
    finished: bool = True
    """Only episodes that the agent or the user ended."""
    min_steps: int | None = Field(default=None, ge=0)
    """The agent's turns at least."""
    max_steps: int | None = Field(default=None, ge=1)
    """The agent's turns at most."""
    reward_at_least: float | None = Field(default=None, ge=0.0, le=1.0)
    """Only episodes with such a reward; one without a reward is dropped."""
    reward_mode: RewardMode = "fraction"
    """Mode of that reward."""
    solved: bool = False
    """Only episodes in which every check holds."""

    def fault(self, trajectory: Trajectory) -> str | None:
        """Why a trajectory is dropped, the same words for the same reason; None when it is kept."""
        if trajectory.stop in UNFINISHED:
            return f"cut short: {trajectory.stop.value}"
        if self.finished and trajectory.stop not in _FINISHED:
            return f"not finished: {trajectory.stop.value}"
        if self.well_formed and (fault := format_fault(trajectory)) is not None:
            return f"format: {fault}"
        steps = len(trajectory.steps)
        if self.min_steps is not None and steps < self.min_steps:
            return f"fewer than {self.min_steps} steps"
        if self.max_steps is not None and steps > self.max_steps:
            return f"more than {self.max_steps} steps"
        if self.reward_at_least is not None:
            reward = trajectory.reward(self.reward_mode)
            if reward is None:
                return f"no {self.reward_mode} reward"
            if reward < self.reward_at_least:
                return f"{self.reward_mode} reward below {self.reward_at_least}"
        if self.solved and (trajectory.verdict is None or not trajectory.verdict.solved):
            return "not solved"
        return None


class ExportReport(Record):
    """What an export kept and why it dropped the rest."""

    run: Path
    out: Path
    filters: SftFilters
    kept: int
    dropped: dict[str, int] = {}
    """Number of trajectories by reason."""
    environments: int = 0
    """Environments that the rows come from."""
    partial: str | None = None
    """What the run lacks, in one sentence: it is still being played, or was not played to its end."""
    agents: dict[str, int] = {}
    """Rows by who played: the model's name, or `oracle`, `random`, `noop`."""


def export_sft(run: RunStore | Path | str, out: Path | str, filters: SftFilters | None = None) -> ExportReport:
    """Write the rows of a run to `out`: JSONL with `messages` and `tools` (TRL, OpenAI), atomically.

    The file holds exactly what the filters keep, so that it is empty when they keep nothing. The system prompt comes
    first and is, byte for byte, the one that was played.

    Raises:
        StoreError: if there is no run or `out` cannot be written.
    """
    store = run if isinstance(run, RunStore) else RunStore.open(run)
    filters = filters if filters is not None else SftFilters()
    require_free(out)
    standing = Standing.of(store)
    ended = 0
    dropped: Counter[str] = Counter()
    agents: Counter[str] = Counter()
    environments: set[str] = set()

    def rows() -> Iterator[Row]:
        nonlocal ended
        for trajectory in store.trajectories():
            ended += trajectory.stop not in UNFINISHED
            reason = filters.fault(trajectory)
            if reason is not None:
                dropped[reason] += 1
                continue
            agents[trajectory.model or trajectory.agent] += 1
            environments.add(trajectory.env_id)
            yield chat_row(trajectory)

    write_atomic(out, (utf8(json_line(row)) for row in rows()))
    return ExportReport(
        run=store.path,
        out=Path(out),
        filters=filters,
        kept=agents.total(),
        dropped=dict(sorted(dropped.items())),
        environments=len(environments),
        partial=standing.lack(ended),
        agents=dict(sorted(agents.items())),
    )
