"""What `synth` costs with the offline model: in one process and in one for each core, with all processes added up."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from envscaler.cores import usable_cores
from envscaler.models import ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.synth import SynthSettings, run_synth
from perf.targets import Target
from perf.usage import family, proportional_kb

TASKS = Path(__file__).parents[1] / "examples" / "tasks.jsonl"
_REST = 30
"""How many times as long as it took to look it waits until it looks again."""
_LOOK_EVERY_S = 0.5


def report(console: Console) -> list[Target]:
    """Measure and print `synth` on the first example tasks, with one process and with all cores."""
    table = Table("synth, processes", "environments", "s each, wall", "s each, CPU", "peak MB, all together", box=None)
    one, all_cores = side_by_side(limit=40, scenarios=5)
    for run in (one, all_cores):
        peak = "" if run.peak_mb is None else f"{run.peak_mb:.0f}"
        each = run.environments or 1
        table.add_row(
            str(run.workers), str(run.environments), f"{run.wall_s / each:.2f}", f"{run.cpu_s / each:.2f}", peak
        )
    table.add_row("one ÷ all cores", "", f"{one.wall_s / all_cores.wall_s:.1f}×", f"{one.cpu_s / all_cores.cpu_s:.1f}×")
    console.print(table)
    return []


@dataclass(frozen=True)
class Measured:
    """One run."""

    workers: int
    environments: int
    scenarios: int
    wall_s: float
    cpu_s: float
    """Of this process and of all that it started, user and system."""
    peak_mb: float | None
    """Memory of all processes together, shared pages counted once; None where the system does not tell."""


def measure(tasks: Path, limit: int, scenarios: int, workers: int) -> Measured:
    """Make a library from the first `limit` tasks."""
    with tempfile.TemporaryDirectory() as folder:
        settings = SynthSettings(
            tasks=tasks, library=Path(folder) / "library", limit=limit, scenarios=scenarios, workers=workers
        )

        async def run() -> tuple[int, int]:
            async with open_models(ModelSettings()) as models:
                report = await run_synth(settings, models, Prompts())
            return len(report.environments), report.funnel.scenarios

        with MemoryWatch() as memory:
            wall, cpu = time.perf_counter(), _cpu()
            environments, made = asyncio.run(run())
            wall, cpu = time.perf_counter() - wall, _cpu() - cpu
    return Measured(workers, environments, made, wall, cpu, memory.peak_mb)


def _cpu() -> float:
    uses = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


class MemoryWatch:
    """Looks from time to time how much memory this process and all below it take."""

    def __init__(self) -> None:
        self.peak_mb: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        wait_s = _LOOK_EVERY_S
        while not self._over.wait(wait_s):
            began = time.perf_counter()
            total = 0
            for size in map(proportional_kb, family(os.getpid())):
                if size is None:
                    self.peak_mb = None  # a part would pass for the whole
                    return
                total += size
            self.peak_mb = max(self.peak_mb or 0.0, total / 1024)
            # With hundreds of processes a look takes long, and what is measured beside it must not slow down.
            wait_s = max(_LOOK_EVERY_S, _REST * (time.perf_counter() - began))


def main() -> None:
    """Print one run as JSON; called once for each number of workers, so that no run finds what another one cached."""
    limit, scenarios, workers = map(int, sys.argv[1:4])
    print(json.dumps(vars(measure(TASKS, limit, scenarios, workers))))


def side_by_side(limit: int, scenarios: int) -> tuple[Measured, Measured]:
    """One process and one for each usable core, each in an interpreter of its own."""

    def run(workers: int) -> Measured:
        command = [sys.executable, "-m", "perf.synthesis", str(limit), str(scenarios), str(workers)]
        return Measured(**json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))

    return run(1), run(usable_cores())


if __name__ == "__main__":
    main()
