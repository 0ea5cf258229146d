"""All workers together have limits: of memory, of number, and of what the system grants; what exceeds them waits."""

from __future__ import annotations

import asyncio
import os
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from envscaler.errors import SandboxError
from envscaler.sandbox import Limits, Program, Sandbox
from envscaler.sandbox.fleet import Fleet
from envscaler.sandbox.memory import Resident, free_bytes

from .conftest import LEDGER, QUICK

pytestmark = pytest.mark.anyio

HOARDER = Program(
    source="""
KEPT = []
class Env:
    def __init__(self, c): self.n = 0
    def hoard(self, mb):
        KEPT.append(bytearray(b"x") * (mb << 20))
        self.n += 1
        return sum(map(len, KEPT)) >> 20
    def hoard_and_work(self, mb):
        held = bytearray(b"x") * (mb << 20)
        for _ in range(25 * 10**6): pass
        self.n += 1
        return self.n
    def touch(self):
        return sum(map(len, KEPT)) >> 20
""",
    class_name="Env",
)
ROOMY = replace(QUICK, cpu_s=8.0, cpu_kill_s=16.0, wall_s=120.0)

needs_proc = pytest.mark.skipif(Resident.of(os.getpid()) is None, reason="the system does not tell what processes take")


def taken_mb(sandbox: Sandbox) -> float | None:
    """Memory of all workers, shared pages not counted; None where looking so closely needs rights that we lack."""
    total = 0.0
    for worker in sandbox.fleet.live:
        try:
            lines = Path(f"/proc/{worker.pid}/smaps_rollup").read_text().splitlines()
        except PermissionError:
            return None
        total += sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))
    return total / 1024


@needs_proc
async def test_sessions_that_together_take_too_much_are_parked_and_come_back_with_what_they_kept() -> None:
    async with Sandbox(replace(ROOMY, max_total_mb=200)) as sandbox:
        sessions = []
        for _ in range(6):
            session = await sandbox.open(HOARDER, {})
            assert (await session.call("hoard", {"mb": 60})).result == 60
            sessions.append(session)
            await asyncio.sleep(0.3)
        await asyncio.sleep(0.6)
        assert sum(session.worker is not None for session in sessions) in (2, 3)
        taken = taken_mb(sandbox)
        assert taken is None or taken < 200
        assert [(await session.call("touch", {})).result for session in sessions] == [60] * 6


@needs_proc
async def test_calls_that_together_take_too_much_are_made_one_after_the_other() -> None:
    async with Sandbox(replace(ROOMY, max_total_mb=250)) as sandbox:
        sessions = [await sandbox.open(HOARDER, {}) for _ in range(4)]
        before = set(sandbox.fleet.live)
        outcomes = await asyncio.gather(*(session.call("hoard_and_work", {"mb": 150}) for session in sessions))
        assert [(outcome.fault, outcome.result) for outcome in outcomes] == [(None, 1)] * 4
        assert not before <= set(sandbox.fleet.live), "none had to give way"


@needs_proc
async def test_a_call_that_alone_takes_more_than_all_may_is_the_tools_fault_and_rolled_back() -> None:
    async with Sandbox(replace(ROOMY, max_total_mb=50)) as sandbox:
        session = await sandbox.open(HOARDER, {})
        outcome = await session.call("hoard_and_work", {"mb": 150})
        assert outcome.fault is not None
        assert (outcome.fault.kind, outcome.fault.type) == ("killed", "OutOfMemory")
        assert (await session.call("touch", {})).result == 0
        assert (await session.state()) == {"n": 0}


@needs_proc
async def test_a_worker_is_known_to_take_what_it_takes() -> None:
    async with Sandbox(ROOMY) as sandbox:
        small, large = await sandbox.open(HOARDER, {}), await sandbox.open(HOARDER, {})
        await large.call("hoard", {"mb": 100})
        sandbox.fleet.weigh()
        assert small.worker is not None
        assert large.worker is not None
        assert small.worker.own_bytes < 10 << 20
        assert 100 << 20 <= large.worker.own_bytes < 115 << 20


async def test_where_the_process_may_open_no_more_files_sessions_take_turns() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with Sandbox(replace(QUICK, max_live=64)) as sandbox:
        sessions = [await sandbox.open(LEDGER, {"accounts": {}})]
        # The limit is on the number of a descriptor: numbers that are free below the highest one are taken first.
        highest, taken = max(map(int, os.listdir("/proc/self/fd"))), [os.dup(0)]
        while taken[-1] < highest:
            taken.append(os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 7, hard))
        try:
            for _ in range(12):
                sessions.append(await sandbox.open(LEDGER, {"accounts": {}}))
            for session in sessions:
                await session.call("open_account", {"owner": "A"})
            assert [(await session.call("journal", {})).result for session in sessions] == [1] * 13
            assert len(sandbox.fleet.live) < 13
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for descriptor in taken:
                os.close(descriptor)


async def test_a_system_that_starts_no_process_at_all_is_an_error_and_one_that_does_again_is_used_again() -> None:
    fleet = Fleet(Limits(max_live=3))
    await fleet.admit()
    with pytest.raises(SandboxError, match="no worker"):
        fleet.refused()
    await fleet.admit()
    await fleet.admit()
    fleet.refused()
    assert fleet.max_live == 1
    waiting = asyncio.create_task(fleet.admit())
    await asyncio.sleep(0)
    assert not waiting.done()
    fleet.weigh()
    await asyncio.wait_for(waiting, 5)
    for _ in range(5):
        fleet.weigh()
    assert fleet.max_live == 3


async def test_leave_to_start_a_worker_is_granted_in_order_and_not_lost_when_who_waits_gives_up() -> None:
    fleet = Fleet(Limits(max_live=1))
    await fleet.admit()
    order: list[int] = []

    async def want(number: int) -> None:
        await fleet.admit()
        order.append(number)
        fleet.leave()

    tasks = [asyncio.create_task(want(number)) for number in range(6)]
    await asyncio.sleep(0)
    for given_up in (0, 2, 5):
        tasks[given_up].cancel()
    fleet.leave()
    tasks[3].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [1, 4]
    await asyncio.wait_for(fleet.admit(), 5)


def test_without_settings_the_number_of_workers_and_their_memory_follow_from_the_machine() -> None:
    fleet = Fleet(Limits())
    assert 2 <= fleet.max_live <= 512 * (os.cpu_count() or 1)
    free = free_bytes()
    assert (fleet.max_bytes is None) == (free is None)
    assert free is None or fleet.max_bytes is None or fleet.max_bytes >= 1024 << 20
    assert Fleet(Limits(max_live=7, max_total_mb=100)).max_live == 7


@needs_proc
async def test_a_system_that_does_not_tell_what_processes_take_is_reported() -> None:
    async with Sandbox(QUICK) as sandbox:
        assert not any("memory of all workers" in clause for clause in sandbox.isolation.missing)
        sandbox.fleet.max_bytes = None
        assert any("memory of all workers" in clause for clause in sandbox.isolation.missing)
        sandbox.fleet.weigh()
