"""What a replay of recorded episodes found, as records. How they are shown is the command line's business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from envscaler.record import Record
from envscaler.rollout.settings import Folder

ExplanationKind = Literal["ended_by_exception", "cut_at_limit", "clock_value"]


class Explanation(Record):
    """Why the recorded reward is not that of the replay."""

    kind: ExplanationKind | None = None
    """None: the rewards are equal, or nothing was found that explains the difference."""
    evidence: str = ""
    """What was seen, in one sentence; empty when there is nothing to explain."""


class ReplayedEpisode(Record):
    """One recorded episode, played again."""

    env_id: str
    task_id: str
    model: str | None
    reward_recorded: float | None
    reward_authors_rule: float | None
    """What the authors' rule gives the replay: 0 unless the agent ended the episode, else the share of checks."""
    fraction: float | None
    """Share of the checks that hold in the final state of the replay; None without checks."""
    gained: float | None
    solved: bool | None
    explanation: Explanation = Explanation()
    reward_equal: bool
    """Whether the recorded reward is `fraction` to four places (or there is neither)."""
    observations: int
    """Steps that called a tool."""
    observations_equal: int
    observations_equal_up_to_ids: int
    """The equal ones, and those that are equal when created ids are mapped; a value of the clock may differ as well."""
    observations_with_clock_values: int = 0
    """Those among them that differ in a value of the clock."""
    differences: tuple[str, ...] = ()
    """The observations that differ otherwise, one sentence each."""


class ReplaySummary(Record):
    """The counts of a replay."""

    episodes: int = 0
    observations: int = 0
    observations_equal: int = 0
    observations_equal_up_to_ids: int = 0
    """Includes the equal ones."""
    reward_equal: int = 0
    reward_explained: int = 0
    """Different, but the authors' rule or a value of the clock accounts for it."""
    reward_unexplained: int = 0


class ReplayReport(Record):
    """What one call of `run_replay` found."""

    source: Folder
    """File or run that was played again."""
    library: Folder
    summary: ReplaySummary
    episodes: tuple[ReplayedEpisode, ...]
    skipped: tuple[str, ...] = ()
    """What could not be played again, one sentence each."""
    kept_apart: dict[str, str] = {}
    """Environments that ran in processes of their own though less was asked for, with the reason."""

    @property
    def agrees(self) -> bool:
        """Whether there is an episode and nothing is left without an explanation."""
        whole = self.summary
        return (
            whole.episodes > 0
            and whole.observations == whole.observations_equal_up_to_ids
            and whole.reward_unexplained == 0
        )


def summarized(episodes: Sequence[ReplayedEpisode]) -> ReplaySummary:
    """The counts over all episodes."""
    equal = sum(episode.reward_equal for episode in episodes)
    explained = sum(not episode.reward_equal and episode.explanation.kind is not None for episode in episodes)
    return ReplaySummary(
        episodes=len(episodes),
        observations=sum(episode.observations for episode in episodes),
        observations_equal=sum(episode.observations_equal for episode in episodes),
        observations_equal_up_to_ids=sum(episode.observations_equal_up_to_ids for episode in episodes),
        reward_equal=equal,
        reward_explained=explained,
        reward_unexplained=len(episodes) - equal - explained,
    )
