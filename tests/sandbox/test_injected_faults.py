"""Workers are killed at random, in whatever they are doing, while more sessions play than workers may live."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from envscaler.sandbox import Program, Sandbox, Session
from envscaler.sandbox.session import Place
from envscaler.sandbox.worker import Worker

from .conftest import LEDGER, QUICK
from .processes import children_of, open_descriptors

pytestmark = pytest.mark.anyio

LIMITS = replace(QUICK, cpu_s=2.0, cpu_kill_s=4.0, wall_s=60.0)
"""A loaded machine is to end nobody before the test does."""
SESSIONS = 12
STEPS = 20

ValueT = TypeVar("ValueT")
Step = Callable[[Awaitable[object]], Awaitable[object]]


class Target(Sandbox):
    """Tells whoever wants to know which worker a task has been given, before a session is brought back in it."""

    def __init__(self, live: int) -> None:
        super().__init__(replace(LIMITS, max_live=live))
        self.given: dict[object, Worker] = {}
        self.tell: dict[object, Callable[[Worker], None]] = {}

    async def place_for(self, program: Program, *, alone: bool) -> tuple[Place, int]:
        worker, slot = await super().place_for(program, alone=alone)
        assert isinstance(worker, Worker)
        task = asyncio.current_task()
        self.given[task] = worker
        if task in self.tell:
            self.tell[task](worker)
        return worker, slot


class Killer:
    """Kills the worker of whoever calls it, once in a step at most: a second death would be the tool's own doing."""

    def __init__(self, sandbox: Target, seed: int) -> None:
        self._sandbox = sandbox
        self._rng = random.Random(seed)
        self.kills = 0

    async def during(self, step: Awaitable[ValueT]) -> ValueT:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        killed: list[Worker] = []

        def kill(worker: Worker) -> None:
            if not killed and not worker.dead:
                os.kill(worker.pid, signal.SIGKILL)
                killed.append(worker)

        def aim(worker: Worker) -> None:
            timers.append(loop.call_later(self._rng.expovariate(1 / 0.003), kill, worker))

        timers: list[asyncio.TimerHandle] = []
        self._sandbox.tell[task] = aim
        if task in self._sandbox.given:
            aim(self._sandbox.given[task])
        try:
            return await step
        finally:
            for timer in timers:
                timer.cancel()
            self.kills += len(killed)
            for worker in killed:
                await noticed(worker)


async def noticed(worker: Worker) -> None:
    """Wait until the death is known here, so that it does not pass for one in the next step."""
    for _ in range(2000):
        if worker.dead:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("nobody notices that a worker has ended")


async def undisturbed(step: Awaitable[ValueT]) -> ValueT:
    return await step


async def episode(sandbox: Sandbox, number: int, during: Step) -> list[object]:
    """Everything that one session shows in a story of its own, forks, snapshots and restoring included."""
    rng = random.Random(number)
    shown: list[object] = []
    session = await sandbox.open(LEDGER, {"accounts": {}}, seed=number)
    for _ in range(STEPS):
        kind = rng.randrange(14)
        if kind == 0:
            twin = await during(session.fork())
            assert isinstance(twin, Session)
            await session.close()
            session = twin
        elif kind == 1:
            snapshot = await session.snapshot()
            shown.append(snapshot)
            await during(session.restore(snapshot))
        elif kind == 2:
            shown.append(await during(session.state()))
        elif kind < 6:
            amount = rng.randrange(9)
            shown.append(await during(session.call("open_account", {"owner": rng.choice("AB"), "amount": amount})))
        elif kind < 8:
            shown.append(await during(session.call("deposit", {"owner": rng.choice("ABC"), "amount": 2})))
        else:
            name = ("tag", "raise_last", "draw", "wreck", "missing", "journal")[kind - 8]
            arguments = {"tag": {"word": rng.choice("uvw")}, "raise_last": {"amount": 1}}.get(name, {})
            shown.append(await during(session.call(name, arguments)))
        shown.append(session.digest)
    await session.close()
    return shown


async def test_shared_workers_killed_at_random_change_nothing_that_is_seen() -> None:
    async with Sandbox(LIMITS) as sandbox:
        expected = [await episode(sandbox, number, undisturbed) for number in range(SESSIONS)]
    descriptors, children = open_descriptors(), children_of(os.getpid())
    async with Target(live=SESSIONS) as sandbox:
        sandbox.settle(LEDGER, "shared")
        kills = 0
        # One killer at a time: each of its kills strikes whatever the others are doing in that process.
        for target in range(SESSIONS):
            killer = Killer(sandbox, target)
            steps = [killer.during if number == target else undisturbed for number in range(SESSIONS)]
            shown = await asyncio.gather(*(episode(sandbox, number, step) for number, step in enumerate(steps)))
            assert shown == expected
            kills += killer.kills
    assert children_of(os.getpid()) == children
    assert open_descriptors() <= descriptors + 3
    assert kills


async def survive(kills: int) -> None:
    async with Sandbox(LIMITS) as sandbox:
        expected = [await episode(sandbox, number, undisturbed) for number in range(SESSIONS)]
    descriptors, children = open_descriptors(), children_of(os.getpid())
    done = 0
    async with Target(live=SESSIONS // 2) as sandbox:
        zygotes = children_of(os.getpid()) - children
        for seed in range(kills):
            killer = Killer(sandbox, seed)
            shown = await asyncio.gather(*(episode(sandbox, number, killer.during) for number in range(SESSIONS)))
            assert shown == expected
            done += killer.kills
            if done >= kills:
                break
        for _ in range(500):
            if not any(children_of(zygote) for zygote in zygotes):
                break
            await asyncio.sleep(0.02)
        assert [children_of(zygote) for zygote in zygotes] == [set()]
        assert sandbox.fleet.live == ()
        # The zygote's control socket, and what the loop keeps for itself.
        assert open_descriptors() <= descriptors + 3
    assert children_of(os.getpid()) == children
    assert done >= kills


async def test_a_hundred_workers_killed_at_random_change_nothing_that_is_seen_and_leave_nothing_behind() -> None:
    await survive(100)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_thousands_of_workers_killed_at_random_change_nothing_that_is_seen_and_leave_nothing_behind() -> None:
    await survive(3000)
