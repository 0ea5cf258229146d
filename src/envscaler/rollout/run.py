"""`run_rollout`: plays a library's scenarios × samples side by side and ends with a run.

What is kept of a run, resumed and scored, is `keeping`'s business; what one episode is stands in `play`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.engine import NullProgress, Progress
from envscaler.env import Homes, ResetChecks, Shelf
from envscaler.errors import ProgramError
from envscaler.llm.tracing import about
from envscaler.roles.role import Prompts
from envscaler.rollout.casting import Cast
from envscaler.rollout.keeping import Asked, Key, RunKeeper
from envscaler.rollout.plan import Assignment, Plan, assignments, plan_episodes
from envscaler.rollout.play import Episode, play_episode
from envscaler.rollout.recall import EpisodeReplies
from envscaler.rollout.report import Played, RolloutReport, RunRecord
from envscaler.rollout.scenario_world import ScenarioWorld
from envscaler.rollout.scheduler import Scheduler
from envscaler.rollout.settings import RolloutSettings, run_id
from envscaler.rollout.speaking import with_dialect
from envscaler.sandbox import IsolationReport, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.store import RunStore

if TYPE_CHECKING:
    from envscaler.models import Models

SETTLING = "try what may share"

_SHOWN = 300
"""Characters of the reasons for keeping an environment apart that are told where it is played."""


async def run_rollout(
    library: Shelf,
    settings: RolloutSettings,
    models: Models | None = None,
    prompts: Prompts | None = None,
    progress: Progress | None = None,
    *,
    only: Collection[tuple[str, str]] | None = None,
    played: Played | None = None,
    runs: Path | None = None,
) -> RolloutReport:
    """Play a library's scenarios and record every episode.

    Killed at any moment, the same call plays what is missing and ends with the same run. Episodes that a failure of
    the machinery cut short are played again.

    Args:
        models: needed by the model agent and by conversations.
        prompts: prompt files of the simulated user; None: the package's.
        only: environment and scenario of all that may be played; None: what the settings say.
        played: which benchmark the scenarios are taken for; None: for none.
        runs: where a run lies that the settings name no folder for; None: in the library.

    Raises:
        UsageError: for unknown environments, a library without scenarios, or a run folder of something else.
        BudgetExhausted: a limit was reached; what is finished is kept and the same call goes on.
        EndpointUnavailable: the endpoint stayed down; likewise.
    """
    prompts = prompts if prompts is not None else Prompts()
    progress = progress if progress is not None else NullProgress()
    settings = await with_dialect(library.store.cache_dir, settings, models)
    run = _Run(library, settings, Cast(settings, models, prompts), progress, only, played, runs)
    run.store.require_usable()
    with run.store.writing():
        return await run.keeper.keep(run.play_missing)


class _Run:
    def __init__(
        self,
        library: Shelf,
        settings: RolloutSettings,
        cast: Cast,
        progress: Progress,
        only: Collection[tuple[str, str]] | None,
        played: Played | None,
        runs: Path | None,
    ) -> None:
        self.library = library
        self.settings = settings
        self.cast = cast
        self.progress = progress
        self.plan = plan_episodes(library, settings, cast.agent(), only)
        record = RunRecord(
            id=settings.out.name
            if settings.out is not None
            else run_id(settings, cast.names, cast.prompts, cast.sampling, played),
            library=library.path.resolve(),
            played=played,
            settings=settings,
            models=cast.names,
            prompts=cast.prompts,
            sampling=cast.sampling,
            note=cast.note,
        )
        place = runs / record.id if runs is not None else library.store.run(record.id).path
        self.store = RunStore(settings.out if settings.out is not None else place)
        self.keeper = RunKeeper(self.store, record, cast, _asked(self.plan, settings), progress)
        self.reset_checks = ResetChecks()

    async def play_missing(self, done: Collection[Key]) -> None:
        self.keeper.replies.load(self.plan.names(self.settings.samples, done))
        # Not a list: nobody knows how many samples are asked for in the hope of playing some.
        missing = (one for one in assignments(self.plan.playable, self.settings.samples) if one.key not in done)
        async with Sandbox(isolation=self.settings.isolation) as sandbox:
            homes = Homes(sandbox, self.settings.isolation, self.library.store.cache_dir)
            await self._settle(homes, done)
            self._note_isolation(sandbox.isolation)
            scheduler = Scheduler(missing, lambda: self.settings.concurrency or self.cast.room())

            async def play(assignment: Assignment, may_repeat: bool) -> bool:
                again = await self._play(assignment, may_repeat, sandbox, homes)
                if self.keeper.halt is not None:
                    scheduler.stop()
                return again

            await scheduler.run(play)
            if homes.apart:
                name, reasons = min(homes.apart.items())
                shown = reasons if len(reasons) <= _SHOWN else f"{reasons[:_SHOWN]}…"
                self.progress.note(
                    f"{len(homes.apart)} environments ran in processes of their own, {name} because: {shown}; "
                    "all reasons stand in run.json (kept_apart)"
                )
                record = self.keeper.record
                self.keeper.record = record.model_copy(update={"kept_apart": {**record.kept_apart, **homes.apart}})

    def _note_isolation(self, now: IsolationReport) -> None:
        before = self.keeper.record
        self.keeper.record = before.model_copy(
            update={
                # Of a run whose episodes were played in several places, the worst.
                "isolation": "portable" if before.isolation == "portable" else now.level,
                "missing_isolation": tuple(dict.fromkeys((*before.missing_isolation, *now.missing))),
                "isolation_modes": tuple(sorted({*before.isolation_modes, self.settings.isolation})),
                "settings": self.settings,
            }
        )
        self.store.write_run(self.keeper.record)

    async def _settle(self, homes: Homes, done: Iterable[Key]) -> None:
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
        if (reason := self.keeper.unplayable.get(assignment.place)) is not None:
            self.keeper.cannot_play(assignment.place, reason)
            return False
        replies = self.keeper.replies_of(assignment.name)
        try:
            episode = await self._episode(assignment, sandbox, homes, replies)
        except ProgramError as error:
            self.keeper.cannot_play(assignment.place, f"the program cannot be used: {error}")
            return False
        return self.keeper.ended(assignment.name, episode, replies, may_repeat=may_repeat)

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


def _asked(plan: Plan, settings: RolloutSettings) -> Asked:
    return Asked(
        digests={
            (skeleton.id, scenario.id): (skeleton.digest, scenario.digest) for skeleton, scenario in plan.playable
        },
        samples=settings.samples,
        order=plan.order,
        skipped=tuple(plan.skipped),
    )


def open_run(path: Path | str) -> tuple[RunStore, RunRecord | None]:
    """A run's folder and its record; None when it was killed before it was written.

    Raises:
        StoreError: if there is no run.
    """
    store = RunStore.open(path)
    return store, store.read_run(RunRecord)
