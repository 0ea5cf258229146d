"""More sessions are open than workers alive, and nothing but time tells: parked ones wake with all that they had."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from envscaler.errors import SandboxError, WorkerLost
from envscaler.sandbox import Limits, Outcome, Program, Sandbox, Session, Snapshot
from envscaler.sandbox.session import Place
from envscaler.sandbox.worker import Worker

from .conftest import LEDGER, QUICK, program_of
from .processes import children_of, open_descriptors, sandbox_processes

pytestmark = pytest.mark.anyio

Call = tuple[str, dict[str, Any]]

HIDING = Program(
    source="""
import json
SEEN = []
class Env:
    count = 0
    def __init__(self, c): self.n = 0
    def add(self, by, memory=[]):
        SEEN.append(by); memory.append(by); Env.count += 1; json.kept = len(SEEN)
        self.n += by
        return [len(SEEN), len(memory), Env.count, json.kept]
    def fail(self, by):
        SEEN.append(-by); Env.count += 10; self.n = 99
        raise ValueError(len(SEEN))
    def no_json(self):
        SEEN.append(0); self.n = -1
        return {1}.__iter__()
    def run_out(self):
        SEEN.append(7)
        while True: SEEN[0] = SEEN[0]
    def swallow(self):
        try:
            while True: self.n += 1
        except BaseException:
            return {"success": True}
    def fill(self):
        SEEN.append(8)
        return bytearray(1 << 40)
""",
    class_name="Env",
)
"""Keeps things in its module, its class, a default argument and the standard library."""


@pytest.fixture
async def narrow() -> AsyncIterator[Sandbox]:
    async with Sandbox(replace(QUICK, max_live=2)) as opened:
        yield opened


def story(rng: random.Random, length: int) -> list[Call]:
    makers = [
        lambda: ("open_account", {"owner": rng.choice("AB"), "amount": rng.randrange(9)}),
        lambda: ("deposit", {"owner": rng.choice("ABC"), "amount": rng.randrange(9)}),
        lambda: ("tag", {"word": rng.choice("uvw")}),
        lambda: ("raise_last", {"amount": rng.randrange(9)}),
        lambda: rng.choice([("draw", {}), ("wreck", {}), ("journal", {}), ("missing", {}), ("tag", {})]),
    ]
    return [rng.choice(makers)() for _ in range(length)]


async def played(session: Session, calls: list[Call]) -> list[Outcome]:
    return [await session.call(name, arguments) for name, arguments in calls]


async def park(session: Session) -> None:
    """Use others until this one has had to go."""
    host = session._host
    assert isinstance(host, Sandbox)
    others = [await host.open(LEDGER, {}) for _ in range(2)]
    assert session.worker is None
    for other in others:
        await other.close()


async def interleaved(sandbox: Sandbox, stories: list[list[Call]]) -> list[list[Outcome]]:
    """All are open at once; each in turn makes a call, and all turns of a round are taken together."""
    sessions = await asyncio.gather(*(sandbox.open(LEDGER, {"accounts": {}}, seed=n) for n in range(len(stories))))
    outcomes: list[list[Outcome]] = [[] for _ in stories]
    for turn in range(max(map(len, stories))):
        at_work = [n for n, calls in enumerate(stories) if turn < len(calls)]
        made = await asyncio.gather(*(sessions[n].call(*stories[n][turn]) for n in at_work))
        for n, outcome in zip(at_work, made, strict=True):
            outcomes[n].append(outcome)
        assert len(sandbox.fleet.live) <= sandbox.fleet.max_live
    await asyncio.gather(*(session.close() for session in sessions))
    return outcomes


async def compared(sessions: int, calls: int, live: int) -> None:
    stories = [story(random.Random(n), calls) for n in range(sessions)]
    async with Sandbox(QUICK) as sandbox:
        alone = []
        for n, calls_of_one in enumerate(stories):
            session = await sandbox.open(LEDGER, {"accounts": {}}, seed=n)
            alone.append(await played(session, calls_of_one))
            await session.close()
    descriptors, children = open_descriptors(), children_of(os.getpid())
    async with Sandbox(replace(QUICK, max_live=live)) as sandbox:
        zygotes = children_of(os.getpid()) - children
        assert await interleaved(sandbox, stories) == alone
        for _ in range(300):
            if not any(children_of(zygote) for zygote in zygotes):
                break
            await asyncio.sleep(0.02)
        assert [children_of(zygote) for zygote in zygotes] == [set()]
        # The zygote's control socket, and what the loop keeps for itself.
        assert open_descriptors() <= descriptors + 3
    assert children_of(os.getpid()) == children


async def test_many_sessions_in_few_workers_give_what_each_gives_alone() -> None:
    await compared(sessions=60, calls=5, live=4)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_thousands_of_sessions_in_few_workers_give_what_each_gives_alone() -> None:
    await compared(sessions=2000, calls=4, live=16)


async def test_the_session_idle_longest_is_the_one_that_is_parked(narrow: Sandbox) -> None:
    first, second = await narrow.open(LEDGER, {}), await narrow.open(LEDGER, {})
    await first.call("journal", {})
    third = await narrow.open(LEDGER, {})
    assert first.worker is not None
    assert second.worker is None
    assert third.worker is not None


async def test_what_a_program_hides_outside_its_instance_is_the_same_parked_or_not(narrow: Sandbox) -> None:
    calls: list[Call] = [
        ("add", {"by": 1}),
        ("fail", {"by": 2}),
        ("no_json", {}),
        ("add", {"by": 3}),
        ("run_out", {}),
        ("add", {"by": 4}),
        ("swallow", {}),
        ("fill", {}),
        ("fail", {"by": 5}),
        ("add", {"by": 6}),
    ]
    alone = await narrow.open(HIDING, {})
    expected = await played(alone, calls)
    assert [outcome.fault.kind if outcome.fault else "" for outcome in expected] == [
        *("", "raised", "not_json", "", "timeout", "", "timeout", "raised", "raised", "")
    ]
    for moment in range(1, len(calls)):
        session = await narrow.open(HIDING, {})
        outcomes = await played(session, calls[:moment])
        await park(session)
        assert outcomes + await played(session, calls[moment:]) == expected
        await session.close()


async def test_forks_snapshots_and_restored_sessions_are_parked_and_woken_as_any_other(narrow: Sandbox) -> None:
    session = await narrow.open(LEDGER, {"accounts": {}}, seed=3)
    await played(session, story(random.Random(1), 6))
    snapshot = await session.snapshot()
    later = await played(session, story(random.Random(2), 6))
    for beginning in ("fork of a parked one", "parked fork", "parked after restoring", "restored while parked"):
        base = await narrow.open(LEDGER, {"accounts": {}}, seed=3)
        if "fork" in beginning:
            await played(base, story(random.Random(1), 6))
            await park(base)
            tried = await base.fork()
            assert base.worker is None
        else:
            tried = base
            if beginning == "restored while parked":
                await park(tried)
            await tried.restore(snapshot)
        if beginning != "fork of a parked one":
            await park(tried)
        assert tried.digest == (await narrow.open(LEDGER, snapshot.state)).digest
        outcomes = await played(tried, story(random.Random(2), 6))
        if "fork" in beginning:
            assert outcomes == later
        else:
            again = await narrow.open(LEDGER, {})
            await again.restore(snapshot)
            assert outcomes == await played(again, story(random.Random(2), 6))
        assert isinstance(await tried.snapshot(), Snapshot)


async def test_a_call_in_flight_is_not_parked_and_those_that_wait_get_their_turn() -> None:
    slow = program_of("    def work(self):\n        for _ in range(4 * 10**6): pass\n        return 'done'\n")
    async with Sandbox(Limits(max_live=2)) as sandbox:
        sessions = await asyncio.gather(*(sandbox.open(slow, {}) for _ in range(7)))
        outcomes = await asyncio.gather(*(session.call("work", {}) for session in sessions))
        assert [outcome.result for outcome in outcomes] == ["done"] * 7


async def test_deadlines_do_not_count_the_time_spent_waiting_for_a_worker() -> None:
    sleepy = program_of(
        "    def wait(self):\n        import threading\n        threading.Event().wait(0.4)\n        return 1\n"
        "    def touch(self):\n        return 1\n"
    )
    async with Sandbox(replace(QUICK, max_live=1, wall_s=1.0)) as sandbox:
        sessions = [await sandbox.open(sleepy, {}) for _ in range(5)]
        # One after the other they wait for up to twice the deadline.
        outcomes = await asyncio.gather(*(session.call("wait", {}) for session in sessions))
        assert [outcome.fault for outcome in outcomes] == [None] * 5


async def test_closing_a_parked_session_starts_no_process(narrow: Sandbox) -> None:
    session = await narrow.open(LEDGER, {})
    await park(session)
    before = sandbox_processes()
    await session.close()
    await session.close()
    assert sandbox_processes() <= before
    with pytest.raises(SandboxError):
        await session.call("journal", {})


async def test_a_call_cancelled_while_it_waits_for_a_worker_was_never_made_and_holds_nobody_up() -> None:
    slow = program_of(
        "    def work(self):\n        self.n += 1\n        for _ in range(5 * 10**6): pass\n        return self.n\n"
    )
    async with Sandbox(Limits(max_live=1)) as sandbox:
        one, two, three = [await sandbox.open(slow, {}) for _ in range(3)]
        first, second, third = (asyncio.create_task(session.call("work", {})) for session in (one, two, three))
        await asyncio.sleep(0.02)
        second.cancel()
        assert (await first).result == 1
        assert (await third).result == 1
        assert (await two.call("work", {})).result == 1


async def test_checks_need_workers_too_and_take_turns_with_sessions() -> None:
    async with Sandbox(replace(QUICK, max_live=1)) as sandbox:
        session = await sandbox.open(LEDGER, {"accounts": {}})
        async with sandbox.judge() as judge:
            for _ in range(3):
                await session.call("open_account", {"owner": "A"})
                state = await session.state()
                (outcome,) = await judge.check(
                    ["def check_func(s): return len(s['accounts']) > 0"], initial_state={}, final_state=state
                )
                assert outcome.value is True
            async with sandbox.trial(LEDGER, {}) as trial:
                assert (await trial.call("journal", {})).result == 0
        assert (await session.call("journal", {})).result == 3


async def test_a_parked_program_that_does_not_come_back_the_same_is_lost_and_not_passed_off(narrow: Sandbox) -> None:
    program = Program("import os\nclass Env:\n def mark(self):\n  self.pid = os.getpid()\n  return 1\n", "Env")
    session = await narrow.open(program, {})
    await session.call("mark", {})
    await park(session)
    for _ in range(2):
        with pytest.raises(WorkerLost, match="mark"):
            await session.call("mark", {})


async def test_a_parked_program_that_fails_no_longer_where_it_had_failed_is_lost(narrow: Sandbox) -> None:
    program = Program(
        "import os\nMADE = os.getpid()\nclass Env:\n def __init__(self, c): self.made = 0\n"
        " def odd(self):\n  if os.getpid() % 2: raise ValueError\n  return 1\n",
        "Env",
    )
    for _ in range(20):
        session = await narrow.open(program, {})
        failed = (await session.call("odd", {})).fault is not None
        await park(session)
        try:
            assert ((await session.call("odd", {})).fault is not None) == failed
        except WorkerLost:
            return
    pytest.fail("process ids were always of one kind")


class Doomed(Sandbox):
    """Kills each new worker once it is told to."""

    doomed = False

    async def place_for(self, program: Program, *, alone: bool) -> tuple[Place, int]:
        worker, slot = await super().place_for(program, alone=alone)
        assert isinstance(worker, Worker)
        if self.doomed:
            os.kill(worker.pid, signal.SIGKILL)
        return worker, slot


async def test_a_parked_session_for_which_every_new_worker_dies_is_lost_and_comes_back_when_they_live() -> None:
    async with Doomed(replace(QUICK, max_live=2)) as sandbox:
        session = await sandbox.open(LEDGER, {"accounts": {}})
        await park(session)
        sandbox.doomed = True
        with pytest.raises(WorkerLost, match="rebuilt"):
            await session.call("journal", {})
        sandbox.doomed = False
        assert (await session.call("journal", {})).result == 0


async def test_a_worker_killed_while_it_rests_is_no_fault_of_the_next_call(narrow: Sandbox) -> None:
    program = program_of("    def die_once(self, path):\n        self.n += 1\n        return self.n\n")
    session = await narrow.open(program, {})
    for n in range(1, 4):
        assert session.worker is not None
        os.kill(session.worker.pid, signal.SIGKILL)
        await asyncio.sleep(0.05)
        assert session.worker is None
        assert (await session.call("die_once", {"path": ""})).result == n


async def test_a_sandbox_that_closes_lets_nobody_wait_for_ever() -> None:
    slow = program_of("    def work(self):\n        for _ in range(10**8): pass\n")
    sandbox = Sandbox(Limits(max_live=1))
    async with sandbox:
        sessions = [await sandbox.open(slow, {}) for _ in range(4)]
        tasks = [asyncio.create_task(session.call("work", {})) for session in sessions]
        await asyncio.sleep(0.1)
    ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
    assert all(isinstance(end, SandboxError) for end in ends)
