"""Work that is spread gives the same answers in their order, in this process and in several."""

from __future__ import annotations

import os
from contextlib import aclosing

import pytest

from envscaler.engine import spread

pytestmark = pytest.mark.anyio
_SERVICE = "engine.services:arithmetic"


@pytest.mark.parametrize("workers", [1, 3])
async def test_answers_come_in_the_order_of_the_work(workers: int) -> None:
    work = [("add", number) for number in range(20)]
    async with aclosing(spread(_SERVICE, 5, work, workers=workers)) as answers:
        assert [answer async for answer in answers] == [5 + number for number in range(20)]


async def test_one_worker_is_this_process_and_several_are_others() -> None:
    async with aclosing(spread(_SERVICE, 0, [("pid", None)], workers=1)) as answers:
        assert [answer async for answer in answers] == [os.getpid()]
    async with aclosing(spread(_SERVICE, 0, [("pid", None)] * 4, workers=2)) as answers:
        pids = {answer async for answer in answers}
    assert len(pids) == 2
    assert os.getpid() not in pids
