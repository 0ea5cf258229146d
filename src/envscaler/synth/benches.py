"""`Bench`: where the work on one environment is carried out, in this process or shared among several.

Both ways give the same. Processes are for the embedded offline model, which is bound by cores; a model at an endpoint
is waited for, and one process does that best.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from envscaler.engine import Processes, Serve, Tell
from envscaler.errors import NotHardened, SandboxError
from envscaler.llm import MeterReport
from envscaler.models import OFFLINE, ModelSettings, open_models
from envscaler.sandbox import Isolation, Limits, Sandbox
from envscaler.sandbox.fleet import few
from envscaler.synth.settings import Stage, SynthSettings
from envscaler.synth.work import Made, Work, carry_out

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts

WORKERS = 128
"""Worker processes alive at once at most: environments that wait for replies mostly hold one or two, which take two to
four MB each; one that is parked meanwhile costs a fork, some milliseconds."""
_AHEAD = 1
"""Environments that wait for a process, so that none waits for an environment."""


class Bench(Protocol):
    """Carries out work, several pieces side by side."""

    at_once: int | None
    """Pieces that it is worth handing over at the same time; None: whatever `admission` lets into play."""

    async def carry_out(self, work: Work, done_with: Callable[[Stage], None]) -> Made:
        """As `work.carry_out`.

        Raises:
            ProcessLost: if the processes that the work is handed to die.
        """
        ...


@asynccontextmanager
async def open_bench(settings: SynthSettings, models: Models, prompts: Prompts) -> AsyncIterator[Bench]:
    """The bench that suits the settings."""
    if settings.workers > 1 and is_shareable(models):
        if settings.isolation == "required":
            async with Sandbox(isolation=settings.isolation):
                pass  # what cannot be had here cannot be had there either, and is better said once
        argument = (prompts, settings.workers, settings.isolation)
        async with Processes(settings.workers, f"{__name__}:serve", argument) as processes:
            yield _SharedBench(processes, models)
    else:
        async with Sandbox(few(WORKERS), isolation=settings.isolation) as sandbox:
            yield _OwnBench(models, prompts, sandbox)


def is_shareable(models: Models) -> bool:
    """Whether processes can do the work: only the embedded model answers, and no budget counts its calls one by one."""
    budget = models.meter.budget
    return models.is_embedded and budget.max_calls is None and budget.max_tokens is None


class _OwnBench:
    """Carries out work in this process."""

    at_once: int | None = None

    def __init__(self, models: Models, prompts: Prompts, sandbox: Sandbox) -> None:
        self._models = models
        self._prompts = prompts
        self._sandbox = sandbox

    async def carry_out(self, work: Work, done_with: Callable[[Stage], None]) -> Made:
        return await carry_out(
            work, models=self._models, prompts=self._prompts, sandbox=self._sandbox, done_with=done_with
        )


class _SharedBench:
    """Hands work to processes, one piece to each at a time."""

    def __init__(self, processes: Processes, models: Models) -> None:
        self.at_once: int | None = processes.count + _AHEAD
        self._processes = processes
        self._models = models

    async def carry_out(self, work: Work, done_with: Callable[[Stage], None]) -> Made:
        made, used = await self._processes.call(work, done_with)
        assert isinstance(made, Made)
        assert isinstance(used, MeterReport)
        self._models.meter.count(used)
        return made


@asynccontextmanager
async def serve(argument: tuple[Prompts, int, Isolation]) -> AsyncIterator[Serve]:
    """What runs in each of so many processes; one whose sandbox does not come up ends like one that dies."""
    prompts, processes, isolation = argument
    async with AsyncExitStack() as open_ones:
        try:
            limits = Limits(sandboxes=processes)
            sandbox = await open_ones.enter_async_context(Sandbox(limits, isolation=isolation))
        except (SandboxError, NotHardened) as fault:
            raise SystemExit(str(fault)) from fault

        async def answer(work: Work, tell: Tell) -> tuple[Made, MeterReport]:
            async with open_models(ModelSettings(model=OFFLINE)) as models:
                made = await carry_out(work, models=models, prompts=prompts, sandbox=sandbox, done_with=tell)
                return made, models.meter.report()

        yield answer
