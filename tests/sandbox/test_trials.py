"""Trials share a worker and yet each begins from nothing; a judge serves many calls and forgets what went wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from envscaler.errors import ProgramError
from envscaler.sandbox import Program, Sandbox, Session

from .conftest import LEDGER, QUICK

pytestmark = pytest.mark.anyio

CLOCK = "2030-05-01T12:00:00"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(QUICK) as opened:
        yield opened


def worker_of(session: Session) -> int:
    assert session.worker is not None
    return session.worker.pid


async def story(session: Session) -> list[object]:
    """What a session answers to calls that show clock, random streams, module globals and state."""
    outcomes = [await session.call("open_account", {"owner": "Ana"}), await session.call("draw", {})]
    outcomes += [await session.call("journal", {}), await session.call("deposit", {"owner": "Ana", "amount": 2})]
    return [*outcomes, await session.state(), session.digest]


async def test_a_trial_in_a_used_worker_answers_as_a_session_of_its_own(sandbox: Sandbox) -> None:
    alone = await sandbox.open(LEDGER, {"accounts": {}}, seed=7, clock=CLOCK)
    expected = await story(alone)
    await alone.close()
    async with sandbox.trial(LEDGER, {"accounts": {}, "tags": ["x"]}) as first:
        used = worker_of(first)
        await story(first)
        await first.call("wreck", {})
    async with sandbox.trial(LEDGER, {"accounts": {}}, seed=7, clock=CLOCK) as second:
        assert worker_of(second) == used
        assert await story(second) == expected


async def test_trials_side_by_side_and_of_other_programs_have_workers_of_their_own(sandbox: Sandbox) -> None:
    other = Program(LEDGER.source + "\nX = 1\n", LEDGER.class_name)
    async with sandbox.trial(LEDGER, {}) as one, sandbox.trial(LEDGER, {}) as two, sandbox.trial(other, {}) as three:
        assert len({worker_of(one), worker_of(two), worker_of(three)}) == 3


async def test_a_worker_that_a_program_spoilt_for_itself_is_replaced(sandbox: Sandbox) -> None:
    program = Program(
        "import json\nassert not hasattr(json, 'mark')\n"
        "class Env:\n    def spoil(self):\n        json.mark = 1\n        return True\n",
        "Env",
    )
    async with sandbox.trial(program, {}) as first:
        used = worker_of(first)
        assert (await first.call("spoil", {})).result is True
    async with sandbox.trial(program, {}) as second:
        assert worker_of(second) != used


async def test_a_trial_of_a_state_that_cannot_be_built_raises_and_the_next_one_works(sandbox: Sandbox) -> None:
    program = Program(
        "class Env:\n    def __init__(self, state):\n        self.n = 1 // state['n']\n"
        "    def read(self):\n        return self.n\n",
        "Env",
    )
    async with sandbox.trial(program, {"n": 1}):
        pass
    with pytest.raises(ProgramError, match="ZeroDivisionError"):
        async with sandbox.trial(program, {"n": 0}):
            raise AssertionError
    async with sandbox.trial(program, {"n": 1}) as session:
        assert (await session.call("read", {})).result == 1


async def test_going_back_in_the_same_worker_gives_what_a_fresh_one_gives(sandbox: Sandbox) -> None:
    session = await sandbox.open(LEDGER, {"accounts": {}}, seed=3)
    start = await session.snapshot()
    expected = await story(session)
    used = worker_of(session)
    await session.restore(start, fresh=False)
    assert worker_of(session) == used
    assert await story(session) == expected
    await session.restore(start)
    assert worker_of(session) != used
    assert await story(session) == expected
    await session.close()


async def test_a_judge_keeps_nothing_of_a_check_that_went_wrong(sandbox: Sandbox) -> None:
    state = {"n": 1}
    spoil = "import json\ndef check_func(final_state):\n    json.mark = 1\n    return None\n"
    look = "import json\ndef check_func(final_state):\n    return hasattr(json, 'mark')\n"
    async with sandbox.judge() as judge:
        (fine,) = await judge.evaluate(["state['n'] == 1"], state)
        assert fine.value is True
        (wrong,) = await judge.check([spoil], initial_state=state, final_state=state)
        assert wrong.value is None
        (after,) = await judge.check([look], initial_state=state, final_state=state)
        assert after.value is False
