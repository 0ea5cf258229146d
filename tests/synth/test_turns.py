"""Tests of turns: work of this machine is done for the earlier environments first, and few at a time."""

from __future__ import annotations

import asyncio

import pytest

from envscaler.synth.turns import Turns, local_work

pytestmark = pytest.mark.anyio


async def test_those_who_wait_go_in_the_order_of_their_places() -> None:
    turns, done, at_once, most = Turns(2), list[float](), 0, 0

    async def work(place: float) -> None:
        nonlocal at_once, most
        with turns.of(place):
            async with local_work():
                at_once += 1
                most = max(most, at_once)
                await asyncio.sleep(0.001)
                done.append(place)
                at_once -= 1

    await asyncio.gather(*map(work, (5, 4, 3, 2, 1, 0)))
    assert most == 2
    # The first two took the free turns; whoever has one is not interrupted.
    assert done == [5, 4, 0, 1, 2, 3]


async def test_a_turn_that_nobody_wants_any_more_is_given_to_the_next() -> None:
    turns, order = Turns(1), list[int]()

    async def work(place: int) -> None:
        with turns.of(place):
            async with local_work():
                order.append(place)

    with turns.of(0):
        async with local_work():
            waiting = [asyncio.create_task(work(place)) for place in (1, 2, 3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.sleep(0)
    # Its turn has come, and it is cancelled before it could take it.
    waiting[1].cancel()
    await asyncio.wait(waiting)
    assert order == [3]
    async with asyncio.timeout(1):
        await work(9)


async def test_without_an_order_nobody_waits() -> None:
    barrier = asyncio.Barrier(5)

    async def hold() -> int:
        async with local_work():
            return await barrier.wait()

    async with asyncio.timeout(5):
        assert sorted(await asyncio.gather(*(hold() for _ in range(5)))) == [0, 1, 2, 3, 4]
