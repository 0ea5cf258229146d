"""Where a session lives changes nothing that it tells: a process of its own, one that it shares, or this process."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, get_args

import pytest

from envscaler.cores import usable_cores
from envscaler.errors import NotHardened, ProgramError, SandboxError
from envscaler.sandbox import Home, IsolationReport, Limits, Outcome, Program, Sandbox, Session
from envscaler.sandbox.nursery import Nursery
from envscaler.sandbox.sharing import SESSIONS_IN_ONE, SharedWorker

from .conftest import LEDGER, QUICK, program_of
from .processes import sandbox_processes

pytestmark = pytest.mark.anyio

HOMES: tuple[Home, ...] = get_args(Home)

DIARY = Program(
    source="""
from __future__ import annotations

import copy
from datetime import date, datetime, timedelta
from typing import Literal, TypedDict

WRITTEN = []


class Page(TypedDict):
    day: str
    text: str


class Diary:
    def __init__(self, init_config):
        self.pages = {}
        self.count = 0

    def write(self, text: str, days_ago: int = 0):
        now = datetime.now()
        day = date.today() - timedelta(days=days_ago)
        assert isinstance(now, date) and isinstance(now, datetime) and isinstance(day, date)
        assert not isinstance(day, datetime)
        self.count += 1
        self.pages[f"p{self.count}"] = {"day": day.isoformat(), "text": text, "at": now.isoformat()}
        WRITTEN.append(text)
        return {"success": True, "pages": copy.deepcopy(self.pages), "written": len(WRITTEN)}

    def day_after(self, day: str):
        import time

        assert date.fromtimestamp(time.time()) == date.today()
        after = datetime.strptime(day, "%Y-%m-%d") + timedelta(days=1)
        return [after.date().isoformat(), after.strftime("%A, %j"), f"{date.fromisoformat(day):%d %B}", str(after)]

    def tear_out(self, page: str):
        text = self.pages.pop(page)
        self.count = -1
        if not text["text"]:
            raise LookupError(f"{page} was empty")
        return {"success": True}
""",
    class_name="Diary",
)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(QUICK) as entered:
        yield entered


def play(rng: random.Random) -> tuple[str, dict[str, Any]]:
    return rng.choice(
        [
            ("write", {"text": rng.choice(["", "rain", "sun"]), "days_ago": rng.randrange(40)}),
            ("tear_out", {"page": f"p{rng.randrange(4)}"}),
            ("day_after", {"day": rng.choice(["2024-02-28", "2024-12-31", "tomorrow"])}),
            ("burn", {}),
            ("write", {"ink": 3}),
        ]
    )


async def played(session: Session, seed: int, steps: int = 12) -> list[Outcome]:
    rng = random.Random(seed)
    return [await session.call(*play(rng)) for _ in range(steps)]


@pytest.mark.parametrize("home", [home for home in HOMES if home != "own"])
async def test_a_session_tells_the_same_wherever_it_lives(sandbox: Sandbox, home: Home) -> None:
    for seed in range(5):
        sandbox.settle(DIARY, "own")
        apart = await sandbox.open(DIARY, {"pages": {}}, seed=seed)
        sandbox.settle(DIARY, home)
        other = await sandbox.open(DIARY, {"pages": {}}, seed=seed)
        assert apart.worker is not None
        assert other.worker is not apart.worker
        assert await played(other, seed) == await played(apart, seed)
        assert await other.snapshot() == await apart.snapshot()
        await apart.close()
        await other.close()


@pytest.mark.parametrize("home", [home for home in HOMES if home != "own"])
async def test_sessions_of_one_program_side_by_side_do_not_meet(sandbox: Sandbox, home: Home) -> None:
    sandbox.settle(DIARY, "own")
    alone = await sandbox.open(DIARY, {"pages": {}}, seed=3)
    expected = await played(alone, 3)
    sandbox.settle(DIARY, home)
    sessions = [await sandbox.open(DIARY, {"pages": {}}, seed=3) for _ in range(5)]
    rngs = [random.Random(3) for _ in sessions]
    told: list[list[Outcome]] = [[] for _ in sessions]
    for _ in range(12):
        for session, rng, outcomes in zip(sessions, rngs, told, strict=True):
            outcomes.append(await session.call(*play(rng)))
    assert told == [expected] * 5
    together = await asyncio.gather(*(sandbox.open(DIARY, {"pages": {}}, seed=3) for _ in range(5)))
    assert await asyncio.gather(*(played(session, 3) for session in together)) == [expected] * 5


@pytest.mark.parametrize("home", HOMES)
async def test_a_session_is_forked_and_put_back_wherever_it_lives(sandbox: Sandbox, home: Home) -> None:
    sandbox.settle(DIARY, home)
    session = await sandbox.open(DIARY, {"pages": {}}, seed=1)
    await played(session, 1)
    moment, twin = await session.snapshot(), await session.fork()
    onward = await played(session, 2)
    assert await played(twin, 2) == onward
    await session.restore(moment)
    again = await played(session, 2)
    assert [outcome.digest for outcome in again] == [outcome.digest for outcome in onward]


async def test_sessions_of_a_program_share_as_many_processes_as_there_are_cores(sandbox: Sandbox) -> None:
    sandbox.settle(LEDGER, "shared")
    sessions = [await sandbox.open(LEDGER, {"accounts": {}}) for _ in range(40)]
    workers = {session.worker for session in sessions}
    assert len(workers) <= (os.cpu_count() or 1)
    for session in sessions[:-1]:
        await session.close()
    assert (await sessions[-1].call("open_account", {"owner": "Ada"})).fault is None
    assert sum(worker.sessions for worker in workers if isinstance(worker, SharedWorker)) == 1


async def test_a_full_process_makes_room_for_one_more(sandbox: Sandbox) -> None:
    sandbox.settle(LEDGER, "shared")
    first = await sandbox.open(LEDGER, {"accounts": {}})
    other = await sandbox.open(LEDGER, {"accounts": {}})
    for session in (first, other):
        assert isinstance(session.worker, SharedWorker)
        session.worker.sessions = SESSIONS_IN_ONE
    third = await sandbox.open(LEDGER, {"accounts": {}})
    assert third.worker not in (first.worker, other.worker)


async def test_what_kills_a_shared_process_costs_only_the_call_that_did_it(sandbox: Sandbox) -> None:
    program = program_of(
        "    def add(self):\n        self.n += 1\n        return self.n\n"
        "    def loop(self):\n        while True:\n            try:\n                while True:\n"
        "                    pass\n            except BaseException:\n                pass\n"
    )
    sandbox.settle(program, "shared")
    sessions = [await sandbox.open(program, {}) for _ in range(6)]
    for session in sessions:
        await session.call("add", {})
    hung = asyncio.create_task(sessions[0].call("loop", {}))
    await asyncio.sleep(0.2)
    others = await asyncio.gather(*(session.call("add", {}) for session in sessions[1:]))
    assert [outcome.result for outcome in others] == [2] * 5
    fault = (await hung).fault
    assert fault is not None
    assert fault.kind == "timeout"
    assert (await sessions[0].call("add", {})).result == 2
    assert sessions[0].worker not in {session.worker for session in sessions[1:]}, "it may do so again"


async def test_a_shared_process_that_is_killed_from_outside_is_built_again_with_all_its_sessions(
    sandbox: Sandbox,
) -> None:
    sandbox.settle(LEDGER, "shared")
    sessions = [await sandbox.open(LEDGER, {"accounts": {}}, seed=seed) for seed in range(8)]
    for session in sessions:
        await session.call("open_account", {"owner": "Ada", "amount": 5})
    before = [session.digest for session in sessions]
    for worker in {session.worker for session in sessions}:
        assert worker is not None
        os.kill(worker.pid, signal.SIGKILL)
    assert [(await session.call("list_accounts", {})).digest for session in sessions] == before


async def test_a_call_that_is_cancelled_in_a_shared_process_was_never_made(sandbox: Sandbox) -> None:
    sandbox.settle(LEDGER, "shared")
    sessions = [await sandbox.open(LEDGER, {"accounts": {}}) for _ in range(4)]
    calls = [asyncio.create_task(session.call("open_account", {"owner": "Ada"})) for session in sessions]
    await asyncio.sleep(0)
    calls[0].cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert all(isinstance(result, Outcome) and result.fault is None for result in results[1:])
    assert (await sessions[0].call("list_accounts", {})).result == []


async def test_precision_that_one_session_sets_is_not_that_of_another_in_its_process(sandbox: Sandbox) -> None:
    program = Program(
        source=(
            "import decimal\nclass Env:\n    def __init__(self, init_config): self.n = 0\n"
            "    def coarse(self): decimal.getcontext().prec = 2\n"
            "    def third(self): return str(decimal.Decimal(1) / 3)\n"
        ),
        class_name="Env",
    )
    sandbox.settle(program, "shared")
    sessions = [await sandbox.open(program, {}) for _ in range(4)]
    await sessions[0].call("coarse", {})
    thirds = [(await session.call("third", {})).result for session in sessions]
    assert thirds == ["0.33"] + ["0." + "3" * 28] * 3


async def test_in_this_process_a_program_finds_what_its_kind_needs_and_touches_nothing_of_ours(
    sandbox: Sandbox,
) -> None:
    rng, now = random.getstate(), time.time()
    sandbox.settle(DIARY, "in-process")
    session = await sandbox.open(DIARY, {"pages": {}})
    await played(session, 0)
    assert random.getstate() == rng
    assert abs(time.time() - now) < 600
    assert session.worker is None
    other = Program(source="import os\nclass Env:\n    def look(self): return 1\n", class_name="Env")
    sandbox.settle(other, "in-process")
    with pytest.raises(ProgramError, match="os cannot be imported"):
        await sandbox.open(other, {})
    with pytest.raises(ProgramError, match="SyntaxError"):
        sandbox.settle(Program(source="class Env", class_name="Env"), "in-process")


async def test_where_isolation_is_required_a_machine_that_cannot_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sandbox(QUICK) as usual:
        level = usual.isolation.level

    async def weak(self: Nursery) -> None:
        self.isolation = IsolationReport("portable", ("no system call filter (seccomp)",))

    if level == "hardened":
        async with Sandbox(QUICK, isolation="required") as sandbox:
            assert sandbox.isolation.level == "hardened"
        monkeypatch.setattr(Nursery, "start", weak)
    with pytest.raises(NotHardened, match="seccomp"):
        await Sandbox(QUICK, isolation="required").__aenter__()


@pytest.mark.parametrize("isolation", ["shared", "in-process"])
async def test_checks_that_share_a_process_say_what_they_say_alone(isolation: Any) -> None:
    good = "def check_func(final_state):\n    return final_state['n'] == initial_state['n']\n"
    odd = "def check_func(final_state):\n    final_state['n'] = 2\n    return 1\n"
    async with Sandbox(Limits(), isolation=isolation) as sandbox, Sandbox(Limits()) as usual:
        for sources in ([good, odd, good], [good], [odd], [good, good]):
            given = {"initial_state": {"n": 1}, "final_state": {"n": 1}}
            assert await sandbox.check(sources, **given) == await usual.check(sources, **given)
        assert len(sandbox.fleet.live) <= 1


async def test_who_is_cancelled_before_his_call_was_sent_disturbs_nobody_in_his_process(sandbox: Sandbox) -> None:
    sandbox.settle(LEDGER, "shared")
    sessions = [await sandbox.open(LEDGER, {"accounts": {}}) for _ in range(8)]
    shared = [session for session in sessions if session.worker is sessions[0].worker]
    assert len(shared) > 1
    first = asyncio.create_task(shared[0].call("open_account", {"owner": "Ada"}))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(shared[1].call("open_account", {"owner": "Bo"}))
    await asyncio.sleep(0)
    worker = shared[0].worker
    waiting.cancel()
    assert (await first).fault is None
    assert shared[0].worker is worker
    assert (await shared[1].call("list_accounts", {})).result == []
    assert shared[1].worker is worker


async def test_a_process_that_has_had_its_share_of_sessions_takes_no_more(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envscaler.sandbox.sharing.BUILDS_IN_ONE", 3)
    sandbox.settle(LEDGER, "shared")
    workers = set()
    for _ in range(12 * (os.cpu_count() or 1)):
        session = await sandbox.open(LEDGER, {"accounts": {}})
        workers.add(session.worker)
        await session.close()
    assert len(workers) >= 4
    assert sum(worker is not None and not worker.dead for worker in workers) <= (os.cpu_count() or 1)


async def test_a_session_put_back_in_a_shared_process_answers_for_itself(sandbox: Sandbox) -> None:
    sandbox.settle(LEDGER, "shared")
    for owner in ("Ada", "Bo", "Cy", "Di"):
        session = await sandbox.open(LEDGER, {"accounts": {}})
        await session.call("open_account", {"owner": owner})
        await session.restore(await session.snapshot(), fresh=False)
        accounts = (await session.call("list_accounts", {})).result
        assert [account["owner"] for account in accounts] == [owner]
    async with sandbox.trial(LEDGER, {"accounts": {}}) as trial:
        assert (await trial.call("list_accounts", {})).result == []


async def test_nothing_is_started_any_more_once_a_sandbox_is_closing() -> None:
    before = sandbox_processes()
    async with Sandbox(QUICK) as sandbox:
        opening = [asyncio.create_task(sandbox.open(LEDGER, {"accounts": {}})) for _ in range(6)]
        await asyncio.sleep(0.01)
    outcomes = await asyncio.gather(*opening, return_exceptions=True)
    assert all(isinstance(outcome, SandboxError | Session) for outcome in outcomes)
    await asyncio.sleep(0.1)
    assert sandbox_processes() <= before


async def test_a_process_with_many_sessions_is_parked_after_those_with_one() -> None:
    async with Sandbox(replace(QUICK, max_live=usable_cores() + 1)) as sandbox:
        sandbox.settle(DIARY, "shared")
        together = [await sandbox.open(DIARY, {"pages": {}}) for _ in range(20)]
        shared = {session.worker for session in together}
        for _ in range(6):
            await sandbox.open(LEDGER, {"accounts": {}})
        assert sum(worker is not None and not worker.dead for worker in shared) == len(shared)
