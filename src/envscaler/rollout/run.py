"""`run_rollout`: plays scenarios × samples side by side, journals each episode, resumes, and scores what is there.

Results never depend on the order in which episodes end. What one episode is stands in `play`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.engine import NullProgress, Progress
from envscaler.env import Homes, ResetChecks, Shelf
from envscaler.errors import (
    BudgetExhausted,
    EndpointUnavailable,
    EnvScalerError,
    ProgramError,
    RequestFailed,
    SandboxError,
    UsageError,
)
from envscaler.llm.tracing import about
from envscaler.roles.role import Prompts
from envscaler.rollout.casting import Cast
from envscaler.rollout.plan import Assignment, assignments, plan_episodes
from envscaler.rollout.play import Episode, play_episode
from envscaler.rollout.recall import EpisodeReplies
from envscaler.rollout.report import RolloutReport, RunRecord, Skipped, told
from envscaler.rollout.results import UNFINISHED, Place, Result, result_of
from envscaler.rollout.scenario_world import ScenarioWorld
from envscaler.rollout.scheduler import Scheduler
from envscaler.rollout.scores import score_table
from envscaler.rollout.settings import RolloutSettings, run_id
from envscaler.rollout.speaking import with_dialect
from envscaler.sandbox import IsolationReport, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.store import EpisodeHead, RunStore
from envscaler.trajectory import Trajectory

if TYPE_CHECKING:
    from envscaler.models import Models

_Key = tuple[str, str, int]
"""Environment, scenario and sample of an episode."""

STAGE = "rollout"
SETTLING = "try what may share"

_SHOWN = 300
"""Characters of the reasons for keeping an environment apart that are told where it is played."""


async def run_rollout(
    library: Shelf,
    settings: RolloutSettings,
    models: Models | None = None,
    prompts: Prompts | None = None,
    progress: Progress | None = None,
) -> RolloutReport:
    """Play a library's scenarios and record every episode.

    Killed at any moment, the same call plays what is missing and ends with the same run. Episodes that a failure of
    the machinery cut short are played again.

    Args:
        models: needed by the model agent and by conversations.
        prompts: prompt files of the simulated user; None: the package's.

    Raises:
        UsageError: for unknown environments, a library without scenarios, or a run folder of something else.
        BudgetExhausted: a limit was reached; what is finished is kept and the same call goes on.
        EndpointUnavailable: the endpoint stayed down; likewise.
    """
    prompts = prompts if prompts is not None else Prompts()
    progress = progress if progress is not None else NullProgress()
    settings = await with_dialect(library, settings, models)
    run = _Run(library, settings, Cast(settings, models, prompts), progress)
    run.store.require_usable()
    with run.store.writing():
        return await run.play_all()


class _Run:
    def __init__(self, library: Shelf, settings: RolloutSettings, cast: Cast, progress: Progress) -> None:
        self.library = library
        self.settings = settings
        self.cast = cast
        self.progress = progress
        self.plan = plan_episodes(library, settings, cast.agent())
        self.record = RunRecord(
            id=settings.out.name
            if settings.out is not None
            else run_id(settings, cast.names, cast.prompts, cast.sampling),
            library=library.path.resolve(),
            settings=settings,
            models=cast.names,
            prompts=cast.prompts,
            sampling=cast.sampling,
            note=cast.note,
        )
        folder = settings.out if settings.out is not None else library.store.run(self.record.id).path
        self.store = RunStore(folder)
        self.replies = self.store.replies()
        self.cut_short: dict[str, EpisodeReplies] = {}
        """Replies of the episodes that are to be played again, by name."""
        self.reset_checks = ResetChecks()
        self.results: dict[tuple[Place, int], Result] = {}
        """Of all episodes of the run, those of earlier commands included."""
        self.played = 0
        self.halt: EnvScalerError | None = None
        self.unplayable: dict[tuple[str, str], str] = {}

    async def play_all(self) -> RolloutReport:
        self._claim_folder()
        done = self._done()
        planned = len(self.plan.playable) * self.settings.samples
        for sentence in told(self.plan.skipped):
            self.progress.note(f"skipped {sentence}")
        self.record = self.record.model_copy(update={"planned": planned, "status": "running"})
        # Before anything is played: whoever looks at a run that was killed is told how much of it is missing.
        self.store.write_run(self.record)
        self.progress.stage(STAGE, planned)
        self.progress.advance(STAGE, len(done))
        if len(done) < planned:
            with self.store:
                await self._play_missing(done)
        report = self._finish(planned, len(done))
        if self.halt is not None:
            raise self.halt
        return report

    async def _play_missing(self, done: Collection[_Key]) -> None:
        self.replies.load(self.plan.names(self.settings.samples, done))
        # Not a list: nobody knows how many samples are asked for in the hope of playing some.
        missing = (one for one in assignments(self.plan.playable, self.settings.samples) if one.key not in done)
        async with Sandbox(isolation=self.settings.isolation) as sandbox:
            homes = Homes(sandbox, self.settings.isolation, self.library.store.cache_dir)
            await self._settle(homes, done)
            self._note_isolation(sandbox.isolation)
            scheduler = Scheduler(missing, lambda: self.settings.concurrency or self.cast.room())

            async def play(assignment: Assignment, may_repeat: bool) -> bool:
                again = await self._play(assignment, may_repeat, sandbox, homes)
                if self.halt is not None:
                    scheduler.stop()
                return again

            try:
                await scheduler.run(play)
            finally:
                self.replies.close()
            if homes.apart:
                name, reasons = min(homes.apart.items())
                shown = reasons if len(reasons) <= _SHOWN else f"{reasons[:_SHOWN]}…"
                self.progress.note(
                    f"{len(homes.apart)} environments ran in processes of their own, {name} because: {shown}; "
                    "all reasons stand in run.json (kept_apart)"
                )
                self.record = self.record.model_copy(update={"kept_apart": {**self.record.kept_apart, **homes.apart}})

    def _note_isolation(self, now: IsolationReport) -> None:
        before = self.record
        self.record = before.model_copy(
            update={
                # Of a run whose episodes were played in several places, the worst.
                "isolation": "portable" if before.isolation == "portable" else now.level,
                "missing_isolation": tuple(dict.fromkeys((*before.missing_isolation, *now.missing))),
                "isolation_modes": tuple(sorted({*before.isolation_modes, self.settings.isolation})),
                "settings": self.settings,
            }
        )
        self.store.write_run(self.record)

    async def _settle(self, homes: Homes, done: Iterable[_Key]) -> None:
        """Settle all programs before the first episode: side by side, instead of each when its turn comes."""
        if not homes.decide:
            return
        played = Counter(key[:2] for key in done)
        first: dict[str, tuple[EnvSkeleton, Scenario]] = {}
        for skeleton, scenario in self.plan.playable:
            if played[skeleton.id, scenario.id] < self.settings.samples:
                first.setdefault(skeleton.id, (skeleton, scenario))
        self.progress.stage(SETTLING, len(first))
        await homes.settle_all(list(first.values()), lambda: self.progress.advance(SETTLING))

    async def _play(self, assignment: Assignment, may_repeat: bool, sandbox: Sandbox, homes: Homes) -> bool:
        """Play one episode and write it down; whether the machinery cut it short and it is to be played again."""
        if assignment.place in self.unplayable:
            self.progress.advance(STAGE)
            return False
        replies = self.cut_short.pop(assignment.name, None) or self.cast.replies(self.replies, assignment.name)
        try:
            episode = await self._episode(assignment, sandbox, homes, replies)
        except ProgramError as error:
            self.unplayable[assignment.place] = f"the program cannot be used: {error}"
            self.progress.advance(STAGE)
            return False
        failure = episode.failure
        if failure is None:
            self._write(episode.trajectory)
            self.replies.drop(assignment.name)
            return False
        if isinstance(failure, BudgetExhausted | EndpointUnavailable):
            self.halt = self.halt or failure
        elif isinstance(failure, RequestFailed) or (may_repeat and isinstance(failure, SandboxError)):
            if replies is not None:
                replies.rewind()
                self.cut_short[assignment.name] = replies
        else:
            # The same replies would lead there again.
            self.replies.drop(assignment.name, again=True)
        if self.halt is None and may_repeat:
            return True
        self._write(episode.trajectory)
        return False

    def _write(self, trajectory: Trajectory) -> None:
        # When it ends, not when its turn comes: a kill must not lose an episode that is over.
        self.store.append(trajectory)
        result = result_of(trajectory)
        self.results[result.place, result.sample] = result
        self.played += 1
        self.progress.advance(STAGE)

    async def _episode(
        self, assignment: Assignment, sandbox: Sandbox, homes: Homes, replies: EpisodeReplies | None
    ) -> Episode:
        skeleton, scenario, sample = assignment.skeleton, assignment.scenario, assignment.sample
        await homes.settle(skeleton, scenario)
        with about(f"{scenario.id} #{sample}"):
            return await self._play_episode(assignment, sandbox, replies)

    async def _play_episode(self, assignment: Assignment, sandbox: Sandbox, replies: EpisodeReplies | None) -> Episode:
        skeleton, scenario, sample = assignment.skeleton, assignment.scenario, assignment.sample
        world = ScenarioWorld(
            skeleton,
            scenario,
            sandbox,
            user=self.cast.user(skeleton, scenario, sample, replies),
            sample=sample,
            agent_seed=self.settings.seed,
            observations=self.settings.observations,
            coerce=self.settings.coerce,
            reset_checks=self.reset_checks,
            prompts=self.cast.system_prompts,
        )
        return await play_episode(
            world,
            self.cast.agent(replies),
            step_limit=self.settings.turns,
            sampling=self.cast.sampling,
            policy=self.settings.call_policy,
        )

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
        self.record = self.record.model_copy(
            update={
                "isolation": earlier.isolation,
                "missing_isolation": earlier.missing_isolation,
                "isolation_modes": earlier.isolation_modes,
                "kept_apart": earlier.kept_apart,
                # What was asked for last counts only where something is played.
                "settings": self.settings.model_copy(update={"isolation": earlier.settings.isolation})
                if earlier.isolation_modes
                else self.settings,
            }
        )

    def _done(self) -> set[_Key]:
        """Those of the episodes asked for that are there."""
        digests = {
            (skeleton.id, scenario.id): (skeleton.digest, scenario.digest) for skeleton, scenario in self.plan.playable
        }
        done: set[_Key] = set()
        for trajectory in self.store.trajectories():
            result = result_of(trajectory)
            self.results[result.place, result.sample] = result
            current = digests.get(result.place) == (trajectory.env_digest, trajectory.scenario_digest)
            # The last line of an episode counts; a failed one may follow a finished one of a stale scenario.
            if current and result.sample < self.settings.samples and result.stop not in UNFINISHED:
                done.add((*result.place, result.sample))
        return done

    def _finish(self, planned: int, resumed: int) -> RolloutReport:
        if self.played:
            self.store.arrange(self._place)
        skipped = [
            *self.plan.skipped,
            *(
                Skipped(env_id=env_id, scenario_id=scenario_id, reason=reason)
                for (env_id, scenario_id), reason in sorted(self.unplayable.items())
            ),
        ]
        self.record = self.record.model_copy(
            update={
                "status": "complete" if self.halt is None else "stopped",
                "planned": planned - len(self.unplayable) * self.settings.samples,
                "scores": score_table([self.results[key] for key in sorted(self.results)]),
                "skipped": tuple(skipped),
                "spent": self.cast.spent,
                "faults": self.cast.faults,
            }
        )
        self.store.write_run(self.record)
        return RolloutReport(run=self.store.path, record=self.record, played=self.played, resumed=resumed)

    def _place(self, head: EpisodeHead) -> tuple[str | int, ...]:
        # Scenarios that are no longer in the library come after those that are.
        index = self.plan.order.get((head.env_id, head.scenario_id), 1 << 30)
        return head.env_id, index, head.scenario_id, head.sample


def open_run(path: Path | str) -> tuple[RunStore, RunRecord | None]:
    """A run's folder and its record; None when it was killed before it was written.

    Raises:
        StoreError: if there is no run.
    """
    store = RunStore.open(path)
    return store, store.read_run(RunRecord)
