"""What a step and a reset cost on each side: CPU of the parent and of its workers, and time by the wall clock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import fmean

from rich.console import Console
from rich.table import Table

from envscaler.errors import ProgramError
from perf.sides import BARE, BASELINE, HARDENED, IN_PROCESS, SHARED, SIDES, Opener, Side
from perf.targets import Target
from perf.usage import measured
from perf.workloads import RELEASE, Workload, desk, released

_SETTLING_S = 0.05
"""Killed workers end, and are counted, within this time."""


@dataclass(frozen=True)
class Cost:
    """Of one workload on one side, in seconds."""

    step_wall_s: float
    step_parent_s: float
    step_cpu_s: float
    reset_wall_s: float
    reset_cpu_s: float
    """Opening and closing, the end of the process included."""


Costs = dict[str, Cost]
"""By name of the workload; those that a side cannot run are missing."""


def report(console: Console) -> list[Target]:
    """Measure and print."""
    small = compare([desk()], sessions=8, rounds=7)
    large = compare([desk(large=True)], sessions=1, rounds=3)
    _print(console, f"desk, a state of {desk().state_kb:.0f} KB", small)
    _print(console, f"desk, a state of {desk(large=True).state_kb:.0f} KB", large)
    targets = _targets(small)
    programs = released()
    if programs:
        costs = compare(programs, sessions=3, rounds=5)
        kb = fmean(workload.state_kb for workload in programs)
        _print(console, f"{len(programs)} released programs, states of {kb:.1f} KB on average", costs)
        targets.append(_fewer_seconds("released programs", costs, 8))
    else:
        console.print(f"The released programs are not in {RELEASE}: only our own program is measured.")
        targets.append(Target("CPU seconds a step, released programs: baseline ÷ hardened", None, 8, "times", True))
    targets.append(_fewer_seconds("219 KB", large, 100))
    return targets


def compare(workloads: Sequence[Workload], sessions: int, rounds: int) -> dict[Side, Costs]:
    """Run every workload on every side, `sessions` at a time, the sides in turn so that load hits all alike.

    Returns:
        The best of the rounds, figure by figure: what else runs here only ever adds.
    """
    return asyncio.run(_compare(workloads, sessions, rounds))


async def _compare(workloads: Sequence[Workload], sessions: int, rounds: int) -> dict[Side, Costs]:
    taken: dict[Side, dict[str, list[Cost]]] = {side: {} for side in SIDES}
    async with AsyncExitStack() as stack:
        ready = {side: await stack.enter_async_context(side.ready(sessions)) for side in SIDES}
        for workload in workloads:
            able = []
            for side, opener in ready.items():
                try:
                    await _measure(opener, workload, 1)  # the first one compiles the program
                except ProgramError:
                    continue  # it imports what is not there in this process
                able.append(side)
            for _ in range(rounds):
                for side in able:
                    cost = await _measure(ready[side], workload, sessions)
                    taken[side].setdefault(workload.name, []).append(cost)
    return {side: {name: _best(costs) for name, costs in found.items()} for side, found in taken.items()}


async def _measure(opener: Opener, workload: Workload, sessions: int) -> Cost:
    with measured() as opening:
        opened = [await opener.open(workload) for _ in range(sessions)]
    with measured() as stepping:
        for environment in opened:
            for name, arguments in workload.calls:
                await environment.call(name, arguments)
    with measured() as closing:
        for environment in opened:
            await environment.close()
        await asyncio.sleep(_SETTLING_S)
    steps = sessions * len(workload.calls)
    return Cost(
        step_wall_s=stepping.wall_s / steps,
        step_parent_s=stepping.parent_s / steps,
        step_cpu_s=stepping.cpu_s / steps,
        reset_wall_s=opening.wall_s / sessions,
        reset_cpu_s=(opening.cpu_s + closing.cpu_s) / sessions,
    )


def _best(costs: list[Cost]) -> Cost:
    return Cost(*(min(values) for values in zip(*(vars(cost).values() for cost in costs), strict=True)))


def _mean(costs: Costs, names: Sequence[str]) -> Cost:
    chosen = [vars(costs[name]).values() for name in names]
    return Cost(*(fmean(values) for values in zip(*chosen, strict=True)))


def _print(console: Console, title: str, costs: dict[Side, Costs]) -> None:
    table = Table(
        title,
        "programs",
        "step, µs wall",
        "CPU, parent",
        "CPU, all",
        "baseline ÷",
        "reset, ms wall",
        "CPU, all",
        box=None,
    )
    for side, found in costs.items():
        if not found:
            table.add_row(side.name, "0")
            continue
        mean = _mean(found, list(found))
        baseline = _mean(costs[BASELINE], list(found))
        table.add_row(
            side.name,
            str(len(found)),
            *(f"{seconds * 1e6:,.1f}" for seconds in (mean.step_wall_s, mean.step_parent_s, mean.step_cpu_s)),
            f"{baseline.step_cpu_s / mean.step_cpu_s:.1f}×",
            *(f"{seconds * 1e3:.2f}" for seconds in (mean.reset_wall_s, mean.reset_cpu_s)),
        )
    console.print(table)


def _targets(small: dict[Side, Costs]) -> list[Target]:
    bare, here, shared, hardened = (_only(small[side]) for side in (BARE, IN_PROCESS, SHARED, HARDENED))
    return [
        Target("in-process step without digest and rollback", _scaled(bare, "step_cpu_s", 1e6), 15, "µs CPU"),
        Target("in-process step with digest and rollback", _scaled(here, "step_cpu_s", 1e6), 50, "µs CPU"),
        Target("in-process reset", _scaled(here, "reset_wall_s", 1e6), 100, "µs"),
        Target("hardened step", _scaled(hardened, "step_wall_s", 1e6), 60, "µs"),
        Target("hardened reset", _scaled(hardened, "reset_wall_s", 1e3), 5, "ms"),
        Target("shared-worker reset", _scaled(shared, "reset_wall_s", 1e3), 0.2, "ms"),
    ]


def _fewer_seconds(what: str, costs: dict[Side, Costs], wanted: float) -> Target:
    names = list(costs[HARDENED])
    ratio = _mean(costs[BASELINE], names).step_cpu_s / _mean(costs[HARDENED], names).step_cpu_s if names else None
    return Target(f"CPU seconds a step, {what}: baseline ÷ hardened", ratio, wanted, "times", True)


def _only(costs: Costs) -> Cost | None:
    return next(iter(costs.values()), None)


def _scaled(cost: Cost | None, figure: str, factor: float) -> float | None:
    return None if cost is None else getattr(cost, figure) * factor
