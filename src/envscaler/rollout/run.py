"""`run_rollout`: plays scenarios × samples side by side, journals each episode, resumes, and scores what is there.

Results never depend on the order in which episodes end. What one episode is stands in `play`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.agents import Agent, ModelAgent, NoopAgent, OracleAgent, RandomAgent, UserSimulator, prompt_digest
from envscaler.engine import NullProgress, Progress, bounded_map
from envscaler.env import Homes, ResetChecks, Shelf
from envscaler.errors import BudgetExhausted, EndpointUnavailable, EnvScalerError, ProgramError, UsageError
from envscaler.models import Faults
from envscaler.models.settings import OFFLINE
from envscaler.roles.role import USER_TURN, Prompts
from envscaler.rollout.plan import Assignment, assignments, plan_episodes
from envscaler.rollout.play import Episode, play_episode
from envscaler.rollout.report import OFFLINE_NOTE, RolloutReport, RunRecord, Skipped, told
from envscaler.rollout.scenario_world import ScenarioWorld
from envscaler.rollout.scores import UNFINISHED, scores
from envscaler.rollout.settings import RolloutSettings, run_id
from envscaler.sandbox import Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ModelUse
from envscaler.store import RunStore
from envscaler.trajectory import Sampling, Trajectory

if TYPE_CHECKING:
    from envscaler.models import Models

STAGE = "rollout"
SETTLING = "try what may share"

_SHOWN = 300
"""Characters of the reasons for keeping an environment apart that are told where it is played."""

_Key = tuple[str, str, int]


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
    run = _Run(library, settings, models, prompts, progress)
    run.store.require_usable()
    with run.store.writing():
        return await run.play_all()


class _Run:
    def __init__(
        self,
        library: Shelf,
        settings: RolloutSettings,
        models: Models | None,
        prompts: Prompts,
        progress: Progress,
    ) -> None:
        self.library = library
        self.settings = settings
        self.models = models
        self.prompts = prompts
        self.progress = progress
        self.agent = _agent(settings, models)
        self.plan = plan_episodes(library, settings, self.agent)
        self.record = self._opening_record()
        folder = settings.out if settings.out is not None else library.store.run(self.record.id).path
        self.store = RunStore(folder)
        self.halt: EnvScalerError | None = None
        self.reset_checks = ResetChecks()
        self.unplayable: dict[tuple[str, str], str] = {}

    async def play_all(self) -> RolloutReport:
        self._claim_folder()
        done = self._done()
        missing = [
            assignment
            for assignment in assignments(self.plan.playable, self.settings.samples)
            if (assignment.skeleton.id, assignment.scenario.id, assignment.sample) not in done
        ]
        planned = len(self.plan.playable) * self.settings.samples
        for sentence in told(self.plan.skipped):
            self.progress.note(f"skipped {sentence}")
        self.record = self.record.model_copy(update={"planned": planned, "status": "running"})
        # Before anything is played: whoever looks at a run that was killed is told how much of it is missing.
        self.store.write_run(self.record)
        self.progress.stage(STAGE, planned)
        self.progress.advance(STAGE, planned - len(missing))
        played = 0
        with self.store:
            if missing:
                async with Sandbox(isolation=self.settings.isolation) as sandbox:
                    homes = Homes(sandbox, self.settings.isolation, self.library.store.cache_dir)
                    await self._settle(homes, missing)
                    before, now = self.record, sandbox.isolation
                    self.record = before.model_copy(
                        update={
                            # Of a run whose episodes were played in several places, the worst.
                            "isolation": "portable" if before.isolation == "portable" else now.level,
                            "missing_isolation": tuple(dict.fromkeys((*before.missing_isolation, *now.missing))),
                            "isolation_modes": tuple(sorted({*self.record.isolation_modes, self.settings.isolation})),
                            "settings": self.settings,
                        }
                    )
                    self.store.write_run(self.record)
                    played = await self._play(missing, sandbox, homes)
                    if homes.apart:
                        name, reasons = min(homes.apart.items())
                        shown = reasons if len(reasons) <= _SHOWN else f"{reasons[:_SHOWN]}…"
                        self.progress.note(
                            f"{len(homes.apart)} environments ran in processes of their own, {name} because: {shown}; "
                            "all reasons stand in run.json (kept_apart)"
                        )
                    self.record = self.record.model_copy(
                        update={"kept_apart": {**self.record.kept_apart, **homes.apart}}
                    )
        report = self._finish(planned, played, planned - len(missing))
        if self.halt is not None:
            raise self.halt
        return report

    async def _settle(self, homes: Homes, missing: list[Assignment]) -> None:
        """Settle all programs before the first episode: side by side, instead of each when its turn comes."""
        if not homes.decide:
            return
        first: dict[str, tuple[EnvSkeleton, Scenario]] = {}
        for assignment in missing:
            first.setdefault(assignment.skeleton.id, (assignment.skeleton, assignment.scenario))
        self.progress.stage(SETTLING, len(first))
        await homes.settle_all(list(first.values()), lambda: self.progress.advance(SETTLING))

    async def _play(self, missing: list[Assignment], sandbox: Sandbox, homes: Homes) -> int:
        played = 0

        async def one(assignment: Assignment) -> int:
            place = (assignment.skeleton.id, assignment.scenario.id)
            if place in self.unplayable:
                self.progress.advance(STAGE)
                return 0
            try:
                episode = await self._episode(assignment, sandbox, homes)
            except ProgramError as error:
                self.unplayable[place] = f"the program cannot be used: {error}"
                self.progress.advance(STAGE)
                return 0
            # Written when it ends, not when its turn comes: a kill must not lose an episode that is over.
            self.store.append(episode.trajectory)
            self.progress.advance(STAGE)
            if isinstance(episode.failure, BudgetExhausted | EndpointUnavailable):
                self.halt = self.halt or episode.failure
            return 1

        async with aclosing(bounded_map(one, self._until_halted(missing), limit=self.settings.concurrency)) as ended:
            async for count in ended:
                played += count
        return played

    def _until_halted(self, missing: list[Assignment]) -> Iterator[Assignment]:
        for assignment in missing:
            if self.halt is not None:
                return
            yield assignment

    async def _episode(self, assignment: Assignment, sandbox: Sandbox, homes: Homes) -> Episode:
        skeleton, scenario, sample = assignment.skeleton, assignment.scenario, assignment.sample
        await homes.settle(skeleton, scenario)
        user = None
        if self.settings.mode == "conversation":
            user = UserSimulator(
                _models(self.models, "a conversation needs a model for its user").chat("user"),
                scenario,
                prompts=self.prompts,
                sample=sample,
                language=skeleton.origin.language,
            )
        world = ScenarioWorld(
            skeleton,
            scenario,
            sandbox,
            user=user,
            sample=sample,
            agent_seed=self.settings.seed,
            observations=self.settings.observations,
            coerce=self.settings.coerce,
            reset_checks=self.reset_checks,
        )
        return await play_episode(
            world, self.agent, step_limit=self.settings.turns, sampling=_sampling(self.models, self.settings)
        )

    def _opening_record(self) -> RunRecord:
        settings = self.settings
        names: dict[str, str] = {}
        digests = {}
        if settings.agent == "model":
            names["agent"] = self.agent.model or ""
            digests[f"agent.{settings.mode}"] = prompt_digest(settings.mode)
        if settings.mode == "conversation":
            names["user"] = _models(self.models, "a conversation needs a model for its user").chat("user").name
            digests[USER_TURN.name] = self.prompts.digest(USER_TURN)
        return RunRecord(
            id=settings.out.name if settings.out is not None else run_id(settings, names, digests),
            library=self.library.path.resolve(),
            settings=settings,
            models=names,
            prompts=digests,
            note=OFFLINE_NOTE if names.get("agent") == OFFLINE else None,
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
        for what, before, now in (
            *((name, earlier.settings.pins()[name], value) for name, value in self.settings.pins().items()),
            ("models", earlier.models, self.record.models),
            ("prompts", earlier.prompts, self.record.prompts),
        ):
            if before != now:
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
        digests = {
            (skeleton.id, scenario.id): (skeleton.digest, scenario.digest) for skeleton, scenario in self.plan.playable
        }
        done: set[_Key] = set()
        for trajectory in self.store.trajectories():
            key = (trajectory.env_id, trajectory.scenario_id, trajectory.sample)
            current = digests.get(key[:2]) == (trajectory.env_digest, trajectory.scenario_digest)
            # The last line of an episode counts; a failed one may follow a finished one of a stale scenario.
            if current and trajectory.stop not in UNFINISHED:
                done.add(key)
        return done

    def _finish(self, planned: int, played: int, resumed: int) -> RolloutReport:
        if played:
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
                "scores": scores(self.store.trajectories()),
                "skipped": tuple(skipped),
                "spent": _spent(self.models),
                "faults": self.models.faults if self.models is not None else Faults(),
            }
        )
        self.store.write_run(self.record)
        return RolloutReport(run=self.store.path, record=self.record, played=played, resumed=resumed)

    def _place(self, trajectory: Trajectory) -> tuple[str | int, ...]:
        # Scenarios that are no longer in the library come after those that are.
        index = self.plan.order.get((trajectory.env_id, trajectory.scenario_id), 1 << 30)
        return trajectory.env_id, index, trajectory.scenario_id, trajectory.sample


def _agent(settings: RolloutSettings, models: Models | None) -> Agent:
    if settings.agent == "oracle":
        return OracleAgent()
    if settings.agent == "random":
        return RandomAgent(settings.random_calls)
    if settings.agent == "noop":
        return NoopAgent()
    return ModelAgent(_models(models, "the model agent needs a model").chat("agent"))


def _models(models: Models | None, why: str) -> Models:
    if models is None:
        raise UsageError(f"{why}; name one with --model")
    return models


def _sampling(models: Models | None, settings: RolloutSettings) -> Sampling:
    if models is None or settings.agent != "model":
        return Sampling()
    return models.settings.of("agent").sampling or Sampling()


def _spent(models: Models | None) -> ModelUse:
    return models.meter.report().spent if models is not None else ModelUse()


def open_run(path: Path | str) -> tuple[RunStore, RunRecord | None]:
    """A run's folder and its record; None when it was killed before it was written.

    Raises:
        StoreError: if there is no run.
    """
    store = RunStore.open(path)
    return store, store.read_run(RunRecord)
