"""Workers may die at any moment; sessions go on as if nothing had happened, and what cannot go on says so."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envscaler.errors import ProgramError, WorkerLost
from envscaler.sandbox import BlockingSandbox, Limits, Outcome, Program, Sandbox, Session

from .conftest import LEDGER, QUICK
from .processes import children_of, living

Call = tuple[str, dict[str, Any]]
CALLS = st.lists(
    st.one_of(
        st.builds(
            lambda owner, n: ("open_account", {"owner": owner, "amount": n}), st.sampled_from("AB"), st.integers(0, 9)
        ),
        st.builds(
            lambda owner, n: ("deposit", {"owner": owner, "amount": n}), st.sampled_from("ABC"), st.integers(0, 9)
        ),
        st.builds(lambda word: ("tag", {"word": word}), st.text(max_size=3)),
        st.builds(lambda n: ("raise_last", {"amount": n}), st.integers(-9, 9)),
        st.sampled_from([("draw", {}), ("wreck", {}), ("missing", {}), ("journal", {}), ("tag", {})]),
    ),
    max_size=12,
)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(QUICK) as opened:
        yield opened


async def played(session: Session, calls: list[Call]) -> list[Outcome]:
    return [await session.call(name, arguments) for name, arguments in calls]


def kill_worker(session: Session) -> None:
    assert session.worker is not None
    os.kill(session.worker.pid, signal.SIGKILL)


LONG: list[Call] = [
    ("open_account", {"owner": "A"}),
    ("deposit", {"owner": "A", "amount": 3}),
    ("draw", {}),
    ("wreck", {}),
    ("tag", {"word": "x"}),
    ("raise_last", {"amount": 5}),
    ("missing", {}),
    ("open_account", {"owner": "B", "amount": 2}),
    ("journal", {}),
    ("draw", {}),
]


@pytest.mark.anyio
async def test_a_worker_killed_between_any_two_calls_changes_no_outcome(sandbox: Sandbox) -> None:
    undisturbed = await played(await sandbox.open(LEDGER, {"accounts": {}}, seed=5), LONG)
    for moment in range(len(LONG)):
        session = await sandbox.open(LEDGER, {"accounts": {}}, seed=5)
        outcomes = await played(session, LONG[:moment])
        kill_worker(session)
        outcomes += await played(session, LONG[moment:])
        assert outcomes == undisturbed
        await session.close()


@pytest.mark.anyio
async def test_workers_killed_at_random_in_the_middle_of_calls_change_no_outcome(sandbox: Sandbox) -> None:
    undisturbed = await played(await sandbox.open(LEDGER, {"accounts": {}}), LONG * 6)
    rng = random.Random(0)
    session = await sandbox.open(LEDGER, {"accounts": {}})
    kills = 0
    outcomes = []
    for name, arguments in LONG * 6:
        # At most one kill a call: a second one would be the tool's doing. Turns of the loop and not a clock say when,
        # so that a fast machine kills as often as a slow one.
        call = asyncio.ensure_future(session.call(name, arguments))
        for _ in range(rng.randrange(1, 4)):
            await asyncio.sleep(0)
        if not call.done() and session.worker is not None and not session.worker.dead:
            kills += 1
            kill_worker(session)
        outcomes.append(await call)
    assert outcomes == undisturbed
    assert kills > 0


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=CALLS, seed=st.integers(0, 2**40), cut=st.integers(0, 12))
def test_equal_seeds_and_calls_give_equal_outcomes_also_through_forks_and_failures_change_nothing(
    box: BlockingSandbox, calls: list[Call], seed: int, cut: int
) -> None:
    one = box.open(LEDGER, {"accounts": {}}, seed=seed)
    two = box.open(LEDGER, {"accounts": {}}, seed=seed)
    first = [one.call(name, arguments) for name, arguments in calls]
    second = [two.call(name, arguments) for name, arguments in calls[:cut]]
    twin = two.fork()
    second += [twin.call(name, arguments) for name, arguments in calls[cut:]]
    assert first == second
    assert one.state() == twin.state()
    digest = box.open(LEDGER, {"accounts": {}}, seed=seed)
    before = digest.digest
    for outcome in first:
        if outcome.fault is not None:
            assert (outcome.digest, outcome.changed) == (before, False)
        assert outcome.changed == (outcome.digest != before)
        before = outcome.digest
    for session in (one, two, twin, digest):
        session.close()


@pytest.mark.anyio
async def test_a_call_that_kills_its_worker_twice_is_the_tools_fault_and_rolled_back(sandbox: Sandbox) -> None:
    program = Program(
        "import os\nclass Env:\n def __init__(self, c): self.n = 0\n def add(self):\n  self.n += 1\n  return self.n\n"
        " def die(self):\n  self.n = 99\n  os._exit(1)\n",
        "Env",
    )
    session = await sandbox.open(program, {})
    await session.call("add", {})
    outcome = await session.call("die", {})
    assert outcome.fault is not None
    assert outcome.fault.kind == "killed"
    assert (await session.call("add", {})).result == 2


@pytest.mark.anyio
async def test_a_cancelled_call_was_never_made_and_its_answer_is_not_taken_for_the_next(sandbox: Sandbox) -> None:
    program = Program(
        "class Env:\n def __init__(self, c): self.n = 0\n def slow(self):\n  self.n = 50\n"
        "  for _ in range(3 * 10**6): pass\n  return 'late'\n def add(self):\n  self.n += 1\n  return self.n\n",
        "Env",
    )
    session = await sandbox.open(program, {})
    await session.call("add", {})
    for delay in (0.0, 0.001, 0.02):
        task = asyncio.create_task(session.call("slow", {}))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await session.call("add", {})).result == 2
    assert (await session.snapshot()).call_index == 2


@pytest.mark.anyio
async def test_calls_of_several_tasks_on_one_session_are_made_one_after_the_other(sandbox: Sandbox) -> None:
    session = await sandbox.open(LEDGER, {"accounts": {"a": {"owner": "A", "amount": 0}}})
    outcomes = await asyncio.gather(*(session.call("deposit", {"owner": "A", "amount": 1}) for _ in range(40)))
    assert sorted(outcome.result["amount"] for outcome in outcomes) == list(range(1, 41))


@pytest.mark.anyio
async def test_an_opening_that_is_cancelled_leaves_no_process_and_no_slot_taken() -> None:
    async with Sandbox(Limits(max_sessions=1)) as sandbox:
        for delay in (0.0, 0.0005, 0.002, 0.005, 0.01):
            task = asyncio.create_task(sandbox.open(LEDGER, {"accounts": {}}))
            await asyncio.sleep(delay)
            task.cancel()
            try:
                await (await task).close()
            except asyncio.CancelledError:
                continue
        session = await asyncio.wait_for(sandbox.open(LEDGER, {"accounts": {}}), 20)
        assert (await session.call("journal", {})).result == 0
        await session.close()


@pytest.mark.anyio
async def test_sessions_survive_the_death_of_the_process_that_forks_workers(sandbox: Sandbox) -> None:
    session = await sandbox.open(LEDGER, {"accounts": {}})
    await session.call("open_account", {"owner": "A"})
    assert session.worker is not None
    worker = session.worker.pid
    zygotes = [pid for pid in children_of(os.getpid()) if worker in children_of(pid)]
    assert len(zygotes) == 1
    os.kill(zygotes[0], signal.SIGKILL)
    for _ in range(200):
        if not living({worker}):
            break
        await asyncio.sleep(0.01)
    assert not living({worker}), "the worker outlived its zygote"
    assert (await session.call("deposit", {"owner": "A", "amount": 2})).result == {"success": True, "amount": 2}


@pytest.mark.anyio
async def test_a_program_that_does_not_do_the_same_again_is_lost_and_not_passed_off(sandbox: Sandbox) -> None:
    program = Program("import os\nclass Env:\n def mark(self):\n  self.pid = os.getpid()\n  return 1\n", "Env")
    session = await sandbox.open(program, {})
    await session.call("mark", {})
    kill_worker(session)
    with pytest.raises(WorkerLost, match="mark"):
        await session.call("mark", {})


@pytest.mark.anyio
async def test_opening_waits_while_as_many_sessions_as_allowed_are_open() -> None:
    async with Sandbox(Limits(max_sessions=2)) as sandbox:
        first = await sandbox.open(LEDGER, {})
        second = await first.fork()
        third = asyncio.create_task(sandbox.open(LEDGER, {}))
        await asyncio.sleep(0.1)
        assert not third.done()
        await second.close()
        await second.close()
        await (await third).close()
        with pytest.raises(ProgramError):
            await sandbox.open(Program("x", "Env"), {})
        await asyncio.wait_for(sandbox.open(LEDGER, {}), 20)


@pytest.mark.anyio
async def test_a_forgotten_session_gives_its_slot_back() -> None:
    async with Sandbox(Limits(max_sessions=1)) as sandbox:
        # None is kept, so that each is forgotten as soon as it is open; only one has a slot.
        digests = [(await asyncio.wait_for(sandbox.open(LEDGER, {}), 20)).digest for _ in range(3)]
        assert len(digests) == 3
        assert len(set(digests)) == 1
