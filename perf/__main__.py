"""Prints what stepping, planning, asking and synthesis cost here, beside the authors' way of stepping, re-enacted."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from rich.console import Console
from rich.table import Table

from envscaler.llm import ScriptedModel
from envscaler.offline.domains import domains
from envscaler.offline.plans import make_plan
from envscaler.offline.states import make_state
from envscaler.offline.wording import wording
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.roles.ask import ask
from envscaler.roles.role import Prompts
from envscaler.sandbox import BlockingSandbox
from perf import sessions
from perf.desk import LendingDesk, calls_of, state_of
from perf.sessions import PROGRAM
from perf.synthesis import side_by_side

SIZES = {"about 4 KB": 24, "about 220 KB": 1300}


class Clock:
    """Time spent between the ends of a `with`: wall, and CPU of this process."""

    wall_s = 0.0
    cpu_s = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), _cpu()
        yield
        self.wall_s, self.cpu_s = time.perf_counter() - wall, _cpu() - cpu


def _cpu() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def _differences(before: object, after: object, found: list[tuple[object, object]]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            _differences(before.get(key), after.get(key), found)
    elif before != after:
        found.append((before, after))


def authors_way(size: int, steps: int) -> Clock:
    """In the main process, with a copy and a recursive difference of the whole state at every step.

    Source: how the released runtime of arXiv 2601.05808 steps an environment, re-enacted from its description.
    """
    desk, clock = LendingDesk(state_of(size)), Clock()
    with clock.running():
        for name, arguments in calls_of(size, steps):
            before = copy.deepcopy(vars(desk))
            result = getattr(desk, name)(**arguments)
            _differences(before, copy.deepcopy(vars(desk)), [])
            json.dumps(result)
    return clock


def our_way(size: int, steps: int) -> tuple[Clock, Clock]:
    """In a hardened worker process: reset (fork and load) and steps with digest and rollback."""
    reset, clock = Clock(), Clock()
    with BlockingSandbox() as sandbox:
        sandbox.open(PROGRAM, state_of(size)).close()  # the first one compiles the program
        with reset.running():
            session = sandbox.open(PROGRAM, state_of(size))
        with clock.running():
            for name, arguments in calls_of(size, steps):
                session.call(name, arguments)
        session.close()
    return reset, clock


def planning(count: int) -> Clock:
    """State, task and plan of one scenario after another, by the offline model."""
    library, clock = next(domain for domain in domains() if domain.slug == "library-lending"), Clock()
    with clock.running():
        for index in range(count):
            state = make_state(library, seed=0, index=index, purpose="scenario")
            make_plan(library, state, Random(index), wording("en"), index=index)
    return clock


def asking(count: int) -> Clock:
    """A question in a role, rendered, answered by a scripted model, parsed and validated."""
    model, prompts, clock = ScriptedModel(lambda request: '{"reason": "kept", "stateful": true}'), Prompts(), Clock()

    async def all_of_them() -> None:
        for index in range(count):
            inputs = t.FilterTaskInputs(task=f"Cancel order {index}")
            await ask(model, roles.FILTER_TASK, inputs, prompts=prompts)

    with clock.running():
        asyncio.run(all_of_them())
    return clock


def synthesis_table() -> Table:
    """`synth` without a model on the first example tasks, with one process and with all cores."""
    table = Table("synth, processes", "environments", "s each, wall", "s each, CPU", "peak MB, all together", box=None)
    one, all_cores = side_by_side(limit=60, scenarios=5)
    for run in (one, all_cores):
        peak = "" if run.peak_mb is None else f"{run.peak_mb:.0f}"
        each = run.environments or 1
        table.add_row(
            str(run.workers), str(run.environments), f"{run.wall_s / each:.2f}", f"{run.cpu_s / each:.2f}", peak
        )
    table.add_row("one ÷ all cores", "", f"{one.wall_s / all_cores.wall_s:.1f}×", f"{one.cpu_s / all_cores.cpu_s:.1f}×")
    return table


def sessions_table() -> Table:
    """Memory and time of live and parked sessions."""
    table = Table("one open session", "MB live", "MB parked", "a step, ms", "a step that wakes it, ms", box=None)
    for words, size in SIZES.items():
        for calls in (0, 40):
            cost = sessions.measure(size, calls, count=40 if size < 100 else 15)
            live = "" if cost.live_mb is None else f"{cost.live_mb:.1f}"
            name = f"{words}, after {calls} calls"
            table.add_row(name, live, f"{cost.parked_mb:.3f}", f"{cost.step_s * 1e3:.2f}", f"{cost.wake_s * 1e3:.1f}")
            memory = "" if cost.live_mb is None else f"{cost.live_mb / cost.parked_mb:.0f}×"
            table.add_row("live ÷ parked, waking ÷ step", memory, "", "", f"{cost.wake_s / cost.step_s:.0f}×")
    return table


def main() -> None:
    """Measure and print."""
    console = Console(width=110)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}: read ratios, not absolute times")
    steps_table = Table("state", "way", "µs a step, wall", "µs a step, CPU of the parent", "reset, ms", box=None)
    for words, size in SIZES.items():
        steps = 3000 if size < 100 else 300
        theirs = authors_way(size, steps)
        reset, ours = our_way(size, steps)
        row: Callable[[float], str] = lambda seconds: f"{seconds / steps * 1e6:.0f}"  # noqa: B023, E731 - used at once
        steps_table.add_row(
            words, "in process, copy and difference (baseline)", row(theirs.wall_s), row(theirs.cpu_s), ""
        )
        steps_table.add_row(words, "hardened worker", row(ours.wall_s), row(ours.cpu_s), f"{reset.wall_s * 1e3:.1f}")
        steps_table.add_row(
            words, "baseline ÷ ours", f"{theirs.wall_s / ours.wall_s:.1f}×", f"{theirs.cpu_s / ours.cpu_s:.1f}×", ""
        )
    console.print(steps_table)
    console.print(sessions_table())
    plans, asked = planning(100), asking(500)
    console.print(f"offline model, one scenario (state, task, plan): {plans.cpu_s / 100 * 1e3:.1f} ms CPU")
    console.print(f"one question in a role, scripted model: {asked.cpu_s / 500 * 1e3:.2f} ms CPU")
    console.print(synthesis_table())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(f"peak memory of this process: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
