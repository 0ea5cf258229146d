"""What an open session costs: alive in a worker of its own, parked, and on the way back."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

from envscaler.sandbox import Limits, Program, Sandbox, Session
from perf.desk import calls_of, state_of
from perf.synthesis import proportional_kb

PROGRAM = Program(source=Path(__file__).with_name("desk.py").read_text(encoding="utf-8"), class_name="LendingDesk")


@dataclass(frozen=True)
class SessionCost:
    """Of one session with a state of some size, in which some calls were made."""

    live_mb: float | None
    """Memory of its worker, shared pages counted in part; None where the system does not tell."""
    parked_mb: float
    """Memory that the parent keeps for it, live or parked."""
    step_s: float
    """Time of a call of a live one, by the wall clock."""
    wake_s: float
    """Time of a call that has to wake it."""


def measure(size: int, calls: int, count: int) -> SessionCost:
    """Open `count` sessions in two workers, then as many in as many."""
    return asyncio.run(_measure(size, calls, count))


async def _measure(size: int, calls: int, count: int) -> SessionCost:
    async with Sandbox(Limits(max_live=2)) as sandbox:
        await (await sandbox.open(PROGRAM, state_of(size))).close()
        tracemalloc.start()
        try:
            sessions = [await _played(sandbox, size, calls) for _ in range(count)]
            gc.collect()
            parked_mb = tracemalloc.get_traced_memory()[0] / count / 1024 / 1024
        finally:
            tracemalloc.stop()
        wake_s = await _mean_step([session for session in sessions if session.worker is None])
    async with Sandbox(Limits(max_live=count + 1)) as sandbox:
        sessions = [await _played(sandbox, size, calls) for _ in range(count)]
        step_s = await _mean_step(sessions)
        taken = [proportional_kb(session.worker.pid) for session in sessions if session.worker is not None]
        known = [kb for kb in taken if kb is not None]
        live_mb = sum(known) / len(known) / 1024 if known else None
    return SessionCost(live_mb, parked_mb, step_s, wake_s)


async def _played(sandbox: Sandbox, size: int, calls: int) -> Session:
    session = await sandbox.open(PROGRAM, state_of(size))
    for name, arguments in calls_of(size, calls):
        await session.call(name, arguments)
    return session


async def _mean_step(sessions: list[Session]) -> float:
    start = time.perf_counter()
    for session in sessions:
        await session.call("get_member", {"member_id": "M00001"})
    return (time.perf_counter() - start) / len(sessions)
