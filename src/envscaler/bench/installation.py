"""`Installation`: a benchmark in a virtual environment of its own: where it lies, what it holds, how it was checked.

Making one is the business of `installing`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.bench.catalogue import BENCHMARKS, HELD_OUT, Benchmark, benchmark_named
from envscaler.bench.crew import INSIDE, Crew
from envscaler.bench.tasks import BenchTask, task_of
from envscaler.errors import StoreError, UsageError
from envscaler.record import Record
from envscaler.rollout.settings import Folder
from envscaler.state import digest
from envscaler.store import read_record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FILE = "installed.json"
VARIABLE = "ENVSCALER_BENCH"


class Recorded(Record):
    """What the recorded solution of one task comes to, and doing nothing."""

    passes: bool
    """Whether the benchmark's own checker takes its own solution."""
    reason: str | None = None
    """Why it does not."""
    raised: int = 0
    """Calls of the solution that raise."""
    failed: int = 0
    """Calls of it that say that they failed."""
    noop: bool = False
    """Whether doing nothing passes."""
    turns_differ: bool = False
    """Whether it is recorded for more or fewer user messages than there are."""
    early: int = 0
    """Calls of it of functions that are not there yet."""


class Installed(Record):
    """installed.json: what an installation holds."""

    benchmark: str
    packages: tuple[str, ...]
    version: str
    """What the benchmark's package says its version is."""
    python: str
    worker: str
    """Digest of what of this package runs there: what was found may depend on it."""
    data: Folder | None = None
    """Folder that the tasks are read from; None: the package's own."""
    steps: int | None = None
    """Steps with tool calls in one turn at which an episode ends."""
    tasks: tuple[BenchTask, ...]
    recorded: dict[str, Recorded]
    """By task, as it was found when it was installed."""

    @property
    def digest(self) -> str:
        """Of all tasks."""
        return digest([task.digest for task in self.tasks])

    def count(self, split: str) -> int:
        """Tasks of one part."""
        return sum(task.split == split for task in self.tasks)


@dataclass(frozen=True)
class Installation:
    """A benchmark that can be played."""

    benchmark: Benchmark
    folder: Path
    installed: Installed

    @asynccontextmanager
    async def crew(self) -> AsyncIterator[Crew]:
        """Sessions of it."""
        async with crew_of(self.benchmark, self.folder, self.installed.data) as crew:
            yield crew


def bench_folder() -> Path:
    """Where virtual environments of benchmarks lie: the folder that ENVSCALER_BENCH names, else in the user's cache."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "envscaler" / "bench"


def worker_digest(benchmark: Benchmark) -> str:
    """Digest of what of this package runs in a benchmark's environment; modules of other benchmarks do not."""
    others = {one.module for one in BENCHMARKS.values()} - {benchmark.module}
    own = (file for file in sorted(INSIDE.glob("*.py")) if _benchmark_of(file.stem) not in others)
    return digest({file.name: file.read_text(encoding="utf-8") for file in own})


def _benchmark_of(module: str) -> str:
    """What a module's name begins with."""
    return module.partition("_")[0]


def folder_of(benchmark: Benchmark) -> Path:
    """The folder of one benchmark."""
    return bench_folder() / benchmark.name


def read_installed(folder: Path) -> Installed | None:
    """What an installation says of itself; None where there is none, or one that another version has made."""
    file = folder / FILE
    if not file.is_file():
        return None
    with contextlib.suppress(StoreError):
        return read_record(file, Installed)
    return None


def python_of(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / "bin" / "python"


def crew_of(benchmark: Benchmark, folder: Path, data: Path | None) -> Crew:
    """Sessions of what lies in a folder, also before it is known to work."""
    settings = {"data": str(data) if data is not None else None}
    return Crew(python_of(folder), benchmark.module, settings)


async def tasks_of(crew: Crew) -> tuple[str, int | None, tuple[BenchTask, ...]]:
    """Version, steps a turn and tasks, as a worker tells them."""
    session = await crew.open()
    try:
        about = await session.ask("describe")
        told = await session.ask("tasks")
    finally:
        await session.close()
    return about["version"], about["steps"], tuple(task_of(task) for task in told["tasks"])


def open_benchmark(name: str) -> Installation:
    """The benchmark of that name.

    Raises:
        UsageError: if there is none, or it is not installed, or what was installed is of another version.
    """
    benchmark = benchmark_named(name)
    if benchmark == HELD_OUT:
        raise UsageError(f"{name} is a part of a library, and nothing to be installed; see envscaler bench run")
    folder = folder_of(benchmark)
    installed = read_installed(folder)
    if installed is None:
        raise UsageError(f"{name} is not installed in {folder.parent}; install it with: envscaler bench install {name}")
    if installed.packages != benchmark.packages or installed.worker != worker_digest(benchmark):
        raise UsageError(
            f"{folder} was made by another version of envscaler; install it again: envscaler bench install {name}"
        )
    return Installation(benchmark, folder, installed)


def installations() -> Iterator[tuple[Benchmark, Installed | None]]:
    """All benchmarks, with what is installed of each."""
    for benchmark in BENCHMARKS.values():
        yield benchmark, read_installed(folder_of(benchmark))
