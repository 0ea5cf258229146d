"""`RunKeeper`: keeps one run folder: which episodes are there, what follows of each that ends, and the record of all.

What is played, and where, is the business of whoever has a keeper: `run` plays libraries, `bench` benchmarks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from envscaler.engine import Progress
from envscaler.errors import (
    BudgetExhausted,
    EndpointUnavailable,
    EnvScalerError,
    RequestFailed,
    SandboxError,
    UsageError,
)
from envscaler.rollout.casting import Cast
from envscaler.rollout.play import Episode
from envscaler.rollout.recall import EpisodeReplies
from envscaler.rollout.report import RolloutReport, RunRecord, Skipped, told
from envscaler.rollout.results import UNFINISHED, Place, Result, result_of
from envscaler.rollout.scores import score_table
from envscaler.store import EpisodeHead, RunStore
from envscaler.trajectory import Trajectory

Key = tuple[str, str, int]
"""Environment, scenario and sample of an episode."""
Digests = tuple[str, str]
"""Of an environment and a scenario."""

STAGE = "rollout"


@dataclass(frozen=True)
class Asked:
    """Which episodes a run asks for."""

    digests: Mapping[Place, Digests]
    """What is played, and in which version."""
    samples: int
    order: Mapping[Place, int]
    """Index of each scenario in its environment, of those that are not played too."""
    skipped: tuple[Skipped, ...] = ()

    @property
    def episodes(self) -> int:
        """How many they are."""
        return len(self.digests) * self.samples


@dataclass
class RunKeeper:
    """Keeps a run while episodes of it are played.

    Results never depend on the order in which episodes end.
    """

    store: RunStore
    record: RunRecord
    cast: Cast
    asked: Asked
    progress: Progress
    results: dict[tuple[Place, int], Result] = field(default_factory=dict)
    """Of all episodes of the run, those of earlier commands included."""
    played: int = 0
    halt: EnvScalerError | None = None
    """What ends the whole run: a budget, or an endpoint that stayed down."""
    unplayable: dict[Place, str] = field(default_factory=dict)
    """What turned out not to be playable, with the reason."""

    def __post_init__(self) -> None:
        self.replies = self.store.replies()
        self._cut_short: dict[str, EpisodeReplies] = {}
        """Replies of the episodes that are to be played again, by name."""

    async def keep(self, play_missing: Callable[[set[Key]], Awaitable[None]]) -> RolloutReport:
        """Have the episodes played that are not there, and write down what became of the run.

        Args:
            play_missing: told what is there already; asks `replies_of` before an episode and `ended` after it.

        Raises:
            UsageError: if the folder holds a run of something else.
            BudgetExhausted: a limit was reached; what is finished is kept.
            EndpointUnavailable: the endpoint stayed down; likewise.
        """
        self._claim_folder()
        done = self._done()
        for sentence in told(self.asked.skipped):
            self.progress.note(f"skipped {sentence}")
        planned = self.asked.episodes
        self.record = self.record.model_copy(update={"planned": planned, "status": "running"})
        # Before anything is played: whoever looks at a run that was killed is told how much of it is missing.
        self.store.write_run(self.record)
        self.progress.stage(STAGE, planned)
        self.progress.advance(STAGE, len(done))
        if len(done) < planned:
            with self.store:
                try:
                    await play_missing(done)
                finally:
                    self.replies.close()
        report = self._finish(len(done))
        if self.halt is not None:
            raise self.halt
        return report

    def replies_of(self, name: str) -> EpisodeReplies | None:
        """What the models of an episode answered before."""
        return self._cut_short.pop(name, None) or self.cast.replies(self.replies, name)

    def ended(self, name: str, episode: Episode, replies: EpisodeReplies | None, *, may_repeat: bool) -> bool:
        """Write an episode down, unless it is to be played again; whether it is."""
        failure = episode.failure
        if failure is None:
            self._write(episode.trajectory)
            self.replies.drop(name)
            return False
        if isinstance(failure, BudgetExhausted | EndpointUnavailable):
            self.halt = self.halt or failure
        elif isinstance(failure, RequestFailed) or (may_repeat and isinstance(failure, SandboxError)):
            if replies is not None:
                replies.rewind()
                self._cut_short[name] = replies
        else:
            # The same replies would lead there again.
            self.replies.drop(name, again=True)
        if self.halt is None and may_repeat:
            return True
        self._write(episode.trajectory)
        return False

    def cannot_play(self, place: Place, reason: str) -> None:
        """Count an episode of what turned out not to be playable."""
        self.unplayable[place] = reason
        self.progress.advance(STAGE)

    def _write(self, trajectory: Trajectory) -> None:
        # When it ends, not when its turn comes: a kill must not lose an episode that is over.
        self.store.append(trajectory)
        result = result_of(trajectory)
        self.results[result.place, result.sample] = result
        self.played += 1
        self.progress.advance(STAGE)

    def _claim_folder(self) -> None:
        """
        Raises:
            UsageError: if the folder holds a run of something else.
        """
        earlier = self.store.read_run(RunRecord)
        if earlier is None:
            if self.store.exists:
                raise UsageError(
                    f"{self.store.path} has trajectories but no run.json, so that it cannot be resumed; "
                    "name another folder with --out"
                )
            self.store.write_run(self.record)
            return
        if (difference := self.record.difference(earlier)) is not None:
            what, now, before = difference
            raise UsageError(
                f"{self.store.path} is a run with {what} {before!r}, not {now!r}; name another folder with --out"
            )
        settings = self.record.settings
        self.record = self.record.model_copy(
            update={
                "isolation": earlier.isolation,
                "missing_isolation": earlier.missing_isolation,
                "isolation_modes": earlier.isolation_modes,
                "kept_apart": earlier.kept_apart,
                # What was asked for last counts only where something is played.
                "settings": settings.model_copy(update={"isolation": earlier.settings.isolation})
                if earlier.isolation_modes
                else settings,
            }
        )

    def _done(self) -> set[Key]:
        """Those of the episodes asked for that are there."""
        done: set[Key] = set()
        for trajectory in self.store.trajectories():
            result = result_of(trajectory)
            self.results[result.place, result.sample] = result
            current = self.asked.digests.get(result.place) == (trajectory.env_digest, trajectory.scenario_digest)
            # The last line of an episode counts; a failed one may follow a finished one of a stale scenario.
            if current and result.sample < self.asked.samples and result.stop not in UNFINISHED:
                done.add((*result.place, result.sample))
        return done

    def _finish(self, resumed: int) -> RolloutReport:
        if self.played:
            self.store.arrange(self._place)
        skipped = [
            *self.asked.skipped,
            *(
                Skipped(env_id=env_id, scenario_id=scenario_id, reason=reason)
                for (env_id, scenario_id), reason in sorted(self.unplayable.items())
            ),
        ]
        self.record = self.record.model_copy(
            update={
                "status": "complete" if self.halt is None else "stopped",
                "planned": self.asked.episodes - len(self.unplayable) * self.asked.samples,
                "scores": score_table([self.results[key] for key in sorted(self.results)]),
                "skipped": tuple(skipped),
                "spent": self.cast.spent,
                "faults": self.cast.faults,
            }
        )
        self.store.write_run(self.record)
        return RolloutReport(run=self.store.path, record=self.record, played=self.played, resumed=resumed)

    def _place(self, head: EpisodeHead) -> tuple[str | int, ...]:
        # Scenarios that are no longer asked for come after those that are.
        index = self.asked.order.get((head.env_id, head.scenario_id), 1 << 30)
        return head.env_id, index, head.scenario_id, head.sample
