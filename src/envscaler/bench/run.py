"""`run_bench`: an agent plays tasks of a benchmark × samples, as it plays scenarios, and ends with a run of the same
form.

How a run is kept and resumed is `rollout.keeping`'s business, what an episode is that of `rollout.play`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.bench.catalogue import Benchmark
from envscaler.bench.crew import Crew
from envscaler.bench.installation import Installation
from envscaler.bench.settings import RUNS, cache_folder, played_of, rollout_settings, tasks_asked_for
from envscaler.bench.tasks import BenchTask
from envscaler.bench.world import BenchWorld, rules_of
from envscaler.engine import NullProgress, Progress
from envscaler.errors import UsageError
from envscaler.llm.tracing import about
from envscaler.models.settings import OFFLINE
from envscaler.roles.role import Prompts
from envscaler.rollout.casting import Cast
from envscaler.rollout.keeping import Asked, Key, RunKeeper
from envscaler.rollout.play import play_episode
from envscaler.rollout.report import RolloutReport, RunRecord, Skipped
from envscaler.rollout.scheduler import Scheduler
from envscaler.rollout.settings import RolloutSettings, run_id
from envscaler.rollout.speaking import with_dialect
from envscaler.state import digest
from envscaler.store import RunStore

if TYPE_CHECKING:
    from envscaler.models import Models

_SIDE_BY_SIDE = 8
"""Episodes in play where no model is asked: each has a process of its own, and they only compute."""

_Assignment = tuple[BenchTask, int]


async def run_bench(
    installation: Installation,
    settings: RolloutSettings,
    models: Models | None = None,
    *,
    options: Mapping[str, str] | None = None,
    names: tuple[str, ...] = (),
    prompts: Prompts | None = None,
    progress: Progress | None = None,
    runs: Path | None = None,
) -> RolloutReport:
    """Play a benchmark and record every episode. Killed at any moment, the same call plays what is missing.

    Args:
        settings: as of rollouts; `env_ids` are parts of the benchmark, `scenarios_per_env` tasks of each.
        models: needed by the model agent.
        options: the benchmark's own, by name.
        names: tasks to play; empty: all.
        prompts: prompt files of the simulated user; None: the package's.
        runs: where runs lie that name no folder; None: in the working folder.

    Raises:
        UsageError: for unknown parts, tasks or options, or a run folder of something else.
        BudgetExhausted: a limit was reached; what is finished is kept and the same call goes on.
        EndpointUnavailable: the endpoint stayed down; likewise.
    """
    runs = runs if runs is not None else Path(RUNS)
    settings = await with_dialect(cache_folder(runs), rollout_settings(installation.benchmark, settings), models)
    cast = Cast(settings, models, prompts if prompts is not None else Prompts(), instructed=False)
    run = _Run(installation, settings, cast, options or {}, names, progress or NullProgress(), runs)
    run.store.require_usable()
    with run.store.writing():
        return await run.keeper.keep(run.play_missing)


class _Run:
    def __init__(
        self,
        installation: Installation,
        settings: RolloutSettings,
        cast: Cast,
        options: Mapping[str, str],
        names: tuple[str, ...],
        progress: Progress,
        runs: Path,
    ) -> None:
        self.installation = installation
        self.settings = settings
        self.options = {**installation.benchmark.chosen(options), **_play(installation.benchmark, settings)}
        self.cast = cast
        if self.cast.names.get("agent") == OFFLINE:
            raise UsageError("the offline model plays recorded plans only, and benchmarks have none; name a --model")
        self.tasks = tasks_asked_for(installation.benchmark, installation.installed, settings, names, self.options)
        self.version = digest(list(installation.benchmark.packages))
        played = played_of(installation.benchmark, installation.installed, self.options)
        name = run_id(settings, cast.names, cast.prompts, cast.sampling, played)
        folder = settings.out if settings.out is not None else runs / installation.benchmark.name / name
        record = RunRecord(
            id=folder.name,
            library=None,
            played=played,
            settings=settings,
            models=cast.names,
            prompts=cast.prompts,
            sampling=cast.sampling,
        )
        self.store = RunStore(folder)
        self.keeper = RunKeeper(self.store, record, cast, self._asked(), progress)

    def _asked(self) -> Asked:
        playable, skipped = [], []
        for task in self.tasks:
            if self.settings.agent == "oracle" and task.gold is None:
                skipped.append(Skipped(env_id=task.split, scenario_id=task.id, reason="no solution that can be played"))
            else:
                playable.append(task)
        # The order of a benchmark is that of all its tasks, whichever are asked for now.
        every = self.installation.installed.tasks
        return Asked(
            digests={(task.split, task.id): (self.version, task.digest) for task in playable},
            samples=self.settings.samples,
            order={(task.split, task.id): index for index, task in enumerate(every)},
            skipped=tuple(skipped),
        )

    async def play_missing(self, done: set[Key]) -> None:
        names = {self._name(task, sample) for task, sample in self._missing(done)}
        self.keeper.replies.load(names.__contains__)
        async with self.installation.crew() as crew:
            scheduler: Scheduler[_Assignment] = Scheduler(self._missing(done), self._room)

            async def play(assignment: _Assignment, may_repeat: bool) -> bool:
                again = await self._play(*assignment, crew, may_repeat=may_repeat)
                if self.keeper.halt is not None:
                    scheduler.stop()
                return again

            await scheduler.run(play)

    def _room(self) -> int:
        if self.settings.concurrency is not None:
            return self.settings.concurrency
        return self.cast.room() if self.settings.agent == "model" else _SIDE_BY_SIDE

    def _missing(self, done: set[Key]) -> Iterator[_Assignment]:
        """What is to be played: the parts in turns, so that a run that ends early has something of each."""
        playable = [task for task in self.tasks if (task.split, task.id) in self.keeper.asked.digests]
        for task in _in_turns(playable):
            for sample in range(self.settings.samples):
                if (task.split, task.id, sample) not in done:
                    yield task, sample

    async def _play(self, task: BenchTask, sample: int, crew: Crew, *, may_repeat: bool) -> bool:
        name = self._name(task, sample)
        replies = self.keeper.replies_of(name)
        world = BenchWorld(
            self.installation.benchmark.name,
            self.version,
            task,
            crew,
            rules=rules_of(self.installation),
            options=self.options,
            mode=self.settings.mode,
            user=lambda instructions: self.cast.instructed_user(instructions, sample, replies),
            sample=sample,
            agent_seed=self.settings.seed,
        )
        with about(f"{task.id} #{sample}"):
            episode = await play_episode(
                world,
                self.cast.agent(replies),
                step_limit=self.settings.turns,
                sampling=self.cast.sampling,
                policy=self.settings.call_policy,
            )
        return self.keeper.ended(name, episode, replies, may_repeat=may_repeat)

    def _name(self, task: BenchTask, sample: int) -> str:
        return f"{task.id} {sample} {self.version} {task.digest}"


def _play(benchmark: Benchmark, settings: RolloutSettings) -> dict[str, str]:
    """What the worker has to know of who plays."""
    # The ceiling is what the recorded calls are worth, also where nobody is told or able to make them.
    if settings.agent == "oracle":
        return {"play": "recorded"}
    # Who is no model has nothing to say to a model that plays the user.
    return {"play": "alone"} if benchmark.conversation and settings.agent != "model" else {}


def _in_turns(tasks: Sequence[BenchTask]) -> Iterator[BenchTask]:
    parts: dict[str, list[BenchTask]] = {}
    for task in tasks:
        parts.setdefault(task.split, []).append(task)
    return (task for task in chain.from_iterable(zip_longest(*parts.values())) if task is not None)
