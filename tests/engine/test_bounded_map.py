"""Tests of the bounded map."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.engine import bounded_map


class Gate:
    """Counts the calls in flight, and lets each one take a number of turns of the event loop."""

    def __init__(self, turns: dict[int, int] | None = None) -> None:
        self.turns = turns or {}
        self.running = 0
        self.most = 0
        self.started: list[int] = []
        self.cancelled: list[int] = []

    async def double(self, number: int) -> int:
        self.started.append(number)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(self.turns.get(number, 1)):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        finally:
            self.running -= 1
        return 2 * number


@given(st.lists(st.integers(0, 20), max_size=40), st.integers(1, 6), st.integers(1, 50))
def test_results_come_in_input_order_whatever_the_calls_take(turns: list[int], limit: int, window: int) -> None:
    gate = Gate(dict(enumerate(turns)))

    async def collect() -> list[int]:
        return [out async for out in bounded_map(gate.double, range(len(turns)), limit=limit, window=window)]

    assert asyncio.run(collect()) == [2 * number for number in range(len(turns))]
    assert gate.most <= limit


@pytest.mark.anyio
async def test_a_slow_first_call_does_not_stop_the_others() -> None:
    release = asyncio.Event()
    finished: list[int] = []

    async def wait_for_the_last(number: int) -> int:
        if number == 0:
            await release.wait()
        finished.append(number)
        if number == 19:
            release.set()
        return number

    out = [number async for number in bounded_map(wait_for_the_last, range(20), limit=2, window=20)]
    assert out == list(range(20))
    assert finished[-1] == 0


@pytest.mark.anyio
async def test_inputs_are_taken_no_further_ahead_than_the_window() -> None:
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    release = asyncio.Event()

    async def hold_the_first(number: int) -> int:
        if number == 0:
            await release.wait()
        return number

    async def collect() -> int:
        return len([out async for out in bounded_map(hold_the_first, numbers(), limit=3, window=10)])

    collecting = asyncio.create_task(collect())
    for _ in range(200):
        await asyncio.sleep(0)
    assert len(taken) == 10
    release.set()
    assert await collecting == 100


@pytest.mark.anyio
async def test_a_call_that_raises_ends_the_map_and_cancels_the_others() -> None:
    gate = Gate(dict.fromkeys(range(10), 10_000))

    async def fail_on_three(number: int) -> int:
        if number == 3:
            raise KeyError("three")
        return await gate.double(number)

    with pytest.raises(KeyError, match="three"):
        async for _ in bounded_map(fail_on_three, range(10), limit=4):
            pass
    assert gate.running == 0
    assert sorted(gate.cancelled) == [0, 1, 2]


@pytest.mark.anyio
async def test_a_consumer_that_leaves_early_leaves_nothing_running() -> None:
    gate = Gate({number: random.Random(number).randrange(1, 50) for number in range(100)})
    async with aclosing(bounded_map(gate.double, range(100), limit=5)) as results:
        async for out in results:
            if out == 20:
                break
    assert gate.running == 0
    assert len(gate.started) < 100


@pytest.mark.anyio
async def test_cancelling_the_consumer_cancels_the_calls() -> None:
    gate = Gate(dict.fromkeys(range(10), 10_000))

    async def collect() -> None:
        async for _ in bounded_map(gate.double, range(10), limit=4):
            pass

    collecting = asyncio.create_task(collect())
    for _ in range(30):
        await asyncio.sleep(0)
    assert gate.running == 4
    collecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await collecting
    assert gate.running == 0


@pytest.mark.anyio
async def test_inputs_may_arrive_later_than_results_are_ready() -> None:
    seen: list[int] = []
    consumed = [asyncio.Event() for _ in range(5)]

    async def one_after_the_other() -> AsyncIterator[int]:
        for number in range(5):
            yield number
            # The next input comes only when the result of this one was consumed.
            await consumed[number].wait()

    async def same(number: int) -> int:
        return number

    async for out in bounded_map(same, one_after_the_other(), limit=3):
        seen.append(out)
        consumed[out].set()
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.anyio
async def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        async for _ in bounded_map(Gate().double, [1], limit=0):
            pass


@pytest.mark.anyio
async def test_a_limit_that_changes_is_looked_at_again_and_one_call_may_always_run() -> None:
    gate = Gate(dict.fromkeys(range(30), 40))
    room = 0
    results = bounded_map(gate.double, range(30), limit=lambda: room, window=100)
    assert await anext(results) == 0
    assert gate.most == 1
    room = 5
    assert [out async for out in results] == [2 * number for number in range(1, 30)]
    assert gate.most == 5


@pytest.mark.anyio
async def test_a_limit_that_grows_while_nothing_happens_is_noticed() -> None:
    begun = asyncio.Event()
    all_begun = asyncio.Barrier(3)
    room = 1

    async def wait(number: int) -> int:
        begun.set()
        await all_begun.wait()
        return number

    async def collect() -> list[int]:
        return [out async for out in bounded_map(wait, range(3), limit=lambda: room, window=10)]

    collecting = asyncio.create_task(collect())
    await begun.wait()
    room = 3
    assert await collecting == [0, 1, 2]


@pytest.mark.anyio
async def test_a_limit_that_changes_needs_a_window() -> None:
    with pytest.raises(ValueError, match="needs a window"):
        await anext(bounded_map(Gate().double, [1], limit=lambda: 2))
