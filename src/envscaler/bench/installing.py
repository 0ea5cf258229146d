"""`install`: makes the virtual environment of a benchmark, and checks it by playing every recorded solution there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

from envscaler.bench.catalogue import HELD_OUT, Benchmark
from envscaler.bench.crew import Crew
from envscaler.bench.installation import (
    FILE,
    Installation,
    Installed,
    Recorded,
    crew_of,
    folder_of,
    python_of,
    read_installed,
    tasks_of,
    worker_digest,
)
from envscaler.bench.tasks import BenchTask
from envscaler.engine import NullProgress, Progress, bounded_map
from envscaler.errors import SandboxError, UsageError
from envscaler.store import json_text, sole_writer, write_atomic
from envscaler.store.atomic import versioned

CHECKING = "play recorded solutions"
_SIDE_BY_SIDE = 4
_CHECK_S = 300.0
_SHOWN = 400


async def install(
    benchmark: Benchmark, *, data: Path | None = None, again: bool = False, progress: Progress | None = None
) -> Installation:
    """Install a benchmark, unless it is there as it should be.

    Args:
        data: folder with tasks in the benchmark's own form, in place of those of its package, or where the benchmark
            has no package; an absolute path.
        again: make the environment anew in any case.

    Raises:
        UsageError: if it cannot be installed or loaded, or has other tasks than it should.
        StoreError: if another process is installing it.
    """
    if benchmark == HELD_OUT:
        raise UsageError(f"{benchmark.name} is a part of a library, and nothing to be installed")
    if data is None and benchmark.data == "needed":
        raise UsageError(f"{benchmark.name} needs --data DIR: {benchmark.data_of}")
    if data is not None and benchmark.data == "package":
        raise UsageError(f"{benchmark.name} has the tasks of its package; leave out --data")
    progress = progress if progress is not None else NullProgress()
    folder = folder_of(benchmark)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with sole_writer(folder.parent / f".{benchmark.name}.lock", str(folder)):
        made_of = folder / ".made-of"
        wanted = "\n".join((*benchmark.packages, sys.version.split()[0]))
        if again or not made_of.is_file() or made_of.read_text(encoding="utf-8") != wanted:
            progress.note(f"making a virtual environment with {', '.join(benchmark.packages)}")
            _make(folder, benchmark.packages)
            write_atomic(made_of, wanted)
        elif (there := _usable(benchmark, folder, data)) is not None:
            return there
        return await _checked(benchmark, folder, data, progress)


def _usable(benchmark: Benchmark, folder: Path, data: Path | None) -> Installation | None:
    """What is there, if nothing of it has to be looked at anew."""
    installed = read_installed(folder)
    if installed is None:
        return None
    same = (installed.packages, installed.worker, installed.data) == (
        benchmark.packages,
        worker_digest(benchmark),
        data,
    )
    return Installation(benchmark, folder, installed) if same else None


async def _checked(benchmark: Benchmark, folder: Path, data: Path | None, progress: Progress) -> Installation:
    async with crew_of(benchmark, folder, data) as crew:
        try:
            version, steps, tasks = await tasks_of(crew)
        except SandboxError as error:
            raise UsageError(f"{benchmark.name} cannot be loaded: {error}") from error
        # Each choice among its tasks is a whole benchmark.
        for only in {tuple(sorted(task.only.items())) for task in tasks}:
            own = [task for task in tasks if tuple(sorted(task.only.items())) == only]
            counts = {split: sum(task.split == split for task in own) for split in benchmark.splits}
            if data is None and counts != dict(benchmark.tasks):
                raise UsageError(f"{benchmark.name} has {counts} tasks where {dict(benchmark.tasks)} are expected")
        progress.stage(CHECKING, len(tasks))

        async def look(task: BenchTask) -> Recorded:
            found = await _recorded(crew, task)
            progress.advance(CHECKING)
            return found

        recorded = [found async for found in bounded_map(look, tasks, limit=_SIDE_BY_SIDE)]
    installed = Installed(
        benchmark=benchmark.name,
        packages=benchmark.packages,
        version=version,
        python=sys.version.split()[0],
        worker=worker_digest(benchmark),
        data=data,
        steps=steps,
        tasks=tasks,
        recorded={task.id: found for task, found in zip(tasks, recorded, strict=True)},
    )
    write_atomic(folder / FILE, json_text(versioned(installed)))
    return Installation(benchmark, folder, installed)


async def _recorded(crew: Crew, task: BenchTask) -> Recorded:
    session = await crew.open()
    try:
        answer = await session.ask("gold", limit_s=_CHECK_S, task=task.id)
    finally:
        await session.close()
    gold = answer["gold"]
    return Recorded(
        passes=gold["passed"],
        reason=None if gold["passed"] else f"{gold['kind']}: {gold['reason']}",
        raised=gold["recorded"]["raised"],
        failed=gold["recorded"]["failed"],
        noop=answer["nothing"]["passed"],
        turns_differ=answer["turns"][0] != answer["turns"][1],
        early=answer["early"],
    )


def _make(folder: Path, packages: tuple[str, ...]) -> None:
    """A new virtual environment in the folder, in place of what is there."""
    uv = shutil.which("uv")
    if uv is not None:
        _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)])
        _run([uv, "pip", "install", "--quiet", "--no-deps", "--python", str(python_of(folder)), *packages])
        return
    venv.create(folder, with_pip=True, clear=True, symlinks=True)
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input")
    _run([str(python_of(folder)), "-m", "pip", "install", *quiet, "--no-deps", *packages])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise UsageError(f"{' '.join(command[:3])} … failed: {said[-_SHOWN:]}")
