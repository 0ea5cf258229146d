"""How many episodes and calls a second one asyncio process plays, with one and with many sessions open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from envscaler.errors import ProgramError
from perf.sides import BASELINE, HARDENED, IN_PROCESS, SHARED, SIDES, Opened, Opener, Side
from perf.targets import Target
from perf.workloads import Workload, desk, released

_OPEN = (1, 64, 1024)
_ALONE = 12
"""Episodes played one after the other where one session is open."""
_LARGE_CALLS = 6
_CALL_S = 1.0
_TURN = 100


def report_episodes(console: Console, *, long: bool = False) -> list[Target]:
    """Measure and print episodes a second: reset, calls, close.

    Args:
        long: also 1,024 sessions on the large state, which takes minutes.
    """
    table = Table("episodes a second", "side", *(f"{count:,} open" for count in _OPEN), box=None)
    large = replace(desk(large=True), calls=desk(large=True).calls[:_LARGE_CALLS])
    groups = (("released programs", released(), _OPEN), ("desk, 219 KB", (large,), _OPEN if long else _OPEN[:2]))
    for title, workloads, numbers in groups:
        for side in (BASELINE, SHARED, HARDENED) if workloads else ():
            # What runs in this process gains nothing by being many.
            counts = numbers[:1] if side is BASELINE else numbers
            rates = [f"{asyncio.run(episode_rate(side, workloads, count)):,.1f}" for count in counts]
            table.add_row(title, side.name, *rates)
    console.print(table)
    return []


def report_calls(console: Console) -> list[Target]:
    """Measure and print calls a second with 64 sessions open, on a small state."""
    table = Table("calls a second, 64 sessions open, 4 KB", "rate", "baseline ÷", box=None)
    sides = [side for side in SIDES if side in (BASELINE, IN_PROCESS, SHARED, HARDENED)]
    rates = asyncio.run(call_rates(sides, desk(), 64))
    for side, rate in rates.items():
        table.add_row(side.name, f"{rate:,.0f}", f"{rate / rates[BASELINE]:.1f}×")
    console.print(table)
    return [
        Target("calls through an async parent, shared workers", rates[SHARED], 15_000, "a second", True),
        Target("calls through an async parent, hardened", rates[HARDENED], 15_000, "a second", True),
    ]


async def episode_rate(side: Side, workloads: Sequence[Workload], count: int) -> float:
    """Episodes a second with `count` sessions open at once, of the workloads in turn."""
    async with side.ready(count) as opener:
        chosen = [await _opened_once(opener, workload) for workload in workloads]
        start = time.perf_counter()
        if count == 1:
            for index in range(_ALONE):
                workload = chosen[index % len(chosen)]
                await _play(await opener.open(workload), workload)
            return _ALONE / (time.perf_counter() - start)
        turns = [chosen[index % len(chosen)] for index in range(count)]
        opened = await asyncio.gather(*(opener.open(workload) for workload in turns))
        await asyncio.gather(*(_play(one, workload) for one, workload in zip(opened, turns, strict=True)))
        return count / (time.perf_counter() - start)


async def call_rates(sides: Sequence[Side], workload: Workload, count: int) -> dict[Side, float]:
    """Calls a second of each side with `count` sessions that are called all the time, the best of two turns."""
    rates = dict.fromkeys(sides, 0.0)
    for _ in range(2):
        for side in sides:
            async with side.ready(count) as opener:
                opened = await asyncio.gather(*(opener.open(workload) for _ in range(count)))
                rates[side] = max(rates[side], await _call_rate(opened, workload))
    return rates


async def _call_rate(opened: Sequence[Opened], workload: Workload) -> float:
    made = 0
    start = time.perf_counter()
    end = start + _CALL_S

    async def player(session: Opened) -> None:
        nonlocal made
        while time.perf_counter() < end:
            for name, arguments in workload.calls:
                await session.call(name, arguments)
                made += 1
                if made % _TURN == 0:
                    await asyncio.sleep(0)  # sides that never wait would not let the others play

    await asyncio.gather(*map(player, opened))
    return made / (time.perf_counter() - start)


async def _opened_once(opener: Opener, workload: Workload) -> Workload:
    try:
        await (await opener.open(workload)).close()  # the first one compiles the program
    except ProgramError as error:
        raise ValueError(f"{workload.name} cannot be run: {error}") from error
    return workload


async def _play(session: Opened, workload: Workload) -> None:
    for name, arguments in workload.calls:
        await session.call(name, arguments)
    await session.close()
