"""What an open session costs: alive in a worker of its own, in a shared one, parked, and on the way back."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from envscaler.sandbox import Limits, Sandbox, Session
from perf.targets import Target
from perf.usage import mean_mb, proportional_kb
from perf.workloads import Workload, desk, released

_LIVE = 64
_LARGE = 8
_CALLS = 10
_LIVE_BESIDE_PARKED = 2


@dataclass(frozen=True)
class SessionCost:
    """Of one session in which the first calls of its workload were made."""

    live_mb: float | None
    """Memory of its worker, shared pages counted in part; None where the system does not tell."""
    shared_mb: float | None
    """Its part of a worker that many share."""
    parked_mb: float
    """Memory that the parent keeps for it, live or parked."""
    step_s: float
    """Time of a call of a live one, by the wall clock."""
    wake_s: float
    """Time of a call that has to wake it."""


def report(console: Console) -> list[Target]:
    """Measure and print."""
    table = Table(
        "one open session", "MB live", "MB shared", "MB parked", "a step, ms", "a step that wakes it, ms", box=None
    )
    groups: list[tuple[str, Sequence[Workload], int]] = [
        ("desk, 4 KB", [desk()], _LIVE),
        ("released programs", released(), _LIVE),
        ("desk, 219 KB", [desk(large=True)], _LARGE),
    ]
    live_mb: dict[str, float | None] = {}
    for name, workloads, count in groups:
        if workloads:
            cost = asyncio.run(_measured(workloads, count))
            live_mb[name] = cost.live_mb
            table.add_row(
                name,
                *("" if mb is None else f"{mb:.2f}" for mb in (cost.live_mb, cost.shared_mb)),
                f"{cost.parked_mb:.3f}",
                f"{cost.step_s * 1e3:.2f}",
                f"{cost.wake_s * 1e3:.1f}",
            )
    console.print(table)
    return [
        Target(f"memory of a live forked session, {name}", live_mb.get(name), 2.5, "MB")
        for name in ("desk, 4 KB", "released programs")
    ]


async def _measured(workloads: Sequence[Workload], count: int) -> SessionCost:
    parked_mb, wake_s = await _parked(workloads, count)
    live_mb, step_s = await _live(workloads, count)
    return SessionCost(live_mb, await _shared_mb(workloads, count), parked_mb, step_s, wake_s)


async def _parked(workloads: Sequence[Workload], count: int) -> tuple[float, float]:
    async with Sandbox(Limits(max_live=_LIVE_BESIDE_PARKED)) as sandbox:
        await _opened(sandbox, workloads, len(workloads))
        gc.collect()
        tracemalloc.start()
        try:
            sessions = await _opened(sandbox, workloads, count)
            gc.collect()
            parked_mb = tracemalloc.get_traced_memory()[0] / count / 1024 / 1024
        finally:
            tracemalloc.stop()
        return parked_mb, await _mean_step([pair for pair in sessions if pair[0].worker is None])


async def _live(workloads: Sequence[Workload], count: int) -> tuple[float | None, float]:
    async with Sandbox(Limits(max_live=count + 1)) as sandbox:
        sessions = await _opened(sandbox, workloads, count)
        step_s = await _mean_step(sessions)
        return mean_mb([session.worker.pid for session, _ in sessions if session.worker is not None]), step_s


async def _shared_mb(workloads: Sequence[Workload], count: int) -> float | None:
    """What one more session adds to the workers that are there."""
    async with Sandbox(Limits(max_live=count), isolation="shared") as sandbox:
        for workload in workloads:
            sandbox.settle(workload.program, "shared")
        first = await _opened(sandbox, workloads, 4 * len(workloads))
        before = _together_kb(first)
        more = await _opened(sandbox, workloads, count)
        after = _together_kb(first + more)
        return None if before is None or after is None else (after - before) / count / 1024


def _together_kb(sessions: Sequence[tuple[Session, Workload]]) -> int | None:
    pids = {session.worker.pid for session, _ in sessions if session.worker is not None}
    known = [kb for kb in map(proportional_kb, pids) if kb is not None]
    return sum(known) if len(known) == len(pids) else None


async def _opened(sandbox: Sandbox, workloads: Sequence[Workload], count: int) -> list[tuple[Session, Workload]]:
    sessions = []
    for index in range(count):
        workload = workloads[index % len(workloads)]
        session = await sandbox.open(workload.program, workload.state)
        for name, arguments in workload.calls[:_CALLS]:
            await session.call(name, arguments)
        sessions.append((session, workload))
    return sessions


async def _mean_step(sessions: Sequence[tuple[Session, Workload]]) -> float:
    start = time.perf_counter()
    for session, workload in sessions:
        await session.call(*workload.calls[0])
    return (time.perf_counter() - start) / max(1, len(sessions))
