"""How many requests an endpoint is given at once: fewer when it turns some away, more while that pays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.llm.throttle import BEGIN, MOST, Behalf, Throttle, on_behalf_of

pytestmark = pytest.mark.anyio


@dataclass
class Virtual:
    """Time that passes when all tasks wait; what sleeps is woken in the order of its time."""

    now: float = 0.0
    sleepers: list[tuple[float, int, asyncio.Event]] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self.sleepers.append((self.now + seconds, len(self.sleepers), woken))
        await woken.wait()

    async def run(self, tasks: list[asyncio.Task[None]]) -> None:
        while not all(task.done() for task in tasks):
            for _ in range(12):  # turns in which whoever can go on does
                await asyncio.sleep(0)
            if self.sleepers and not all(task.done() for task in tasks):
                first = min(self.sleepers, key=lambda sleeper: sleeper[:2])
                self.sleepers.remove(first)
                self.now = max(self.now, first[0])
                first[2].set()
        for task in tasks:
            task.result()


def throttled(time: Virtual, most: int | None = None) -> Throttle:
    return Throttle(most, clock=time.time, sleep=time.sleep, random=lambda: 0.5)


async def asked(
    throttle: Throttle, time: Virtual, serve: Callable[[int], tuple[float, bool]], *, askers: int, times: int
) -> None:
    """Many who ask all the time; `serve` says by how many are at work how long a request takes and whether it is
    turned away."""
    at_work = 0

    async def ask() -> None:
        nonlocal at_work
        for _ in range(times):
            async with throttle.slot() as slot:
                at_work += 1
                latency_s, refused = serve(at_work)
                await time.sleep(latency_s)
                at_work -= 1
                slot.ended = "overloaded" if refused else "answered"

    await time.run([asyncio.create_task(ask()) for _ in range(askers)])


async def test_it_grows_as_long_as_more_is_answered_and_never_beyond_who_asks() -> None:
    time = Virtual()
    throttle = throttled(time)
    await asked(throttle, time, lambda at_work: (1.0, False), askers=300, times=12)
    assert throttle.peak == 300
    assert throttle.limit <= MOST


async def test_a_server_that_only_queues_is_not_given_more() -> None:
    time = Virtual()
    throttle = throttled(time)
    await asked(throttle, time, lambda at_work: (max(1.0, at_work / 16), False), askers=200, times=8)
    assert throttle.limit <= 2 * BEGIN


async def test_what_is_turned_away_makes_it_smaller_until_it_fits() -> None:
    time = Virtual()
    throttle = throttled(time, most=256)
    assert throttle.limit == 256
    await asked(throttle, time, lambda at_work: (0.01, True) if at_work > 20 else (1.0, False), askers=256, times=20)
    assert throttle.limit <= 40


@pytest.mark.parametrize("most", [None, 256])
async def test_an_endpoint_that_turns_away_what_is_too_much_is_kept_busy_all_the_same(most: int | None) -> None:
    time = Virtual()
    throttle = throttled(time, most)
    allowed, latency_s, each = 64, 4.0, 12
    at_work = answered = refused = 0

    async def ask() -> None:
        nonlocal at_work, answered, refused
        for _ in range(each):
            failures = 0
            while True:
                async with throttle.slot() as slot:
                    if at_work < allowed:
                        at_work += 1
                        await time.sleep(latency_s)
                        at_work -= 1
                        answered += 1
                        slot.ended = "answered"
                        break
                    await time.sleep(0.01)
                    slot.ended = "overloaded"
                refused += 1
                await time.sleep(0.5 * 2.0**failures * 0.75)
                failures += 1

    await time.run([asyncio.create_task(ask()) for _ in range(256)])
    assert answered == 256 * each
    # With beginning and end, in which it is not known yet, and nobody is left who waits.
    assert answered / time.now > 0.8 * allowed / latency_s
    assert refused < 0.2 * answered


async def test_it_comes_back_when_the_endpoint_does() -> None:
    time = Virtual()
    throttle = throttled(time, most=64)
    await asked(throttle, time, lambda at_work: (1.0, time.now < 20), askers=64, times=60)
    assert throttle.limit >= 32


async def test_a_few_faults_by_chance_do_not_throttle() -> None:
    time = Virtual()
    throttle = throttled(time, most=64)
    count = 0

    def serve(at_work: int) -> tuple[float, bool]:
        nonlocal count
        count += 1
        return 1.0, count % 25 == 0

    await asked(throttle, time, serve, askers=64, times=20)
    assert throttle.limit == 64


async def test_who_has_an_earlier_place_is_served_first() -> None:
    time = Virtual()
    throttle = throttled(time, most=1)
    served: list[object] = []
    early, late = Behalf(0), Behalf(1)

    async def ask(name: object) -> None:
        async with throttle.slot() as slot:
            await time.sleep(1)
            slot.ended = "answered"
            served.append(name)

    tasks = []
    for name in ("nobody", "late", "early", "late", "nobody", "early"):
        somebody = {"early": early, "late": late}.get(name)
        with nullcontext() if somebody is None else on_behalf_of(somebody):
            tasks.append(asyncio.create_task(ask(name)))
    await asyncio.sleep(0)
    assert (early.asking, late.asking) == (2, 2)
    await time.run(tasks)
    assert served == ["nobody", "early", "early", "late", "late", "nobody"]
    assert (early.asking, late.asking) == (0, 0)


async def test_an_endpoint_that_comes_back_is_soon_given_as_much_as_before() -> None:
    time = Virtual()
    throttle = throttled(time, most=256)
    await asked(throttle, time, lambda at_work: (0.01, True), askers=256, times=4)
    assert throttle.limit < BEGIN
    throttle.came_back()
    began = time.now
    await asked(throttle, time, lambda at_work: (4.0, False), askers=256, times=10)
    assert throttle.limit == 256
    assert time.now - began < 4.0 * 10 * 1.6


async def test_while_it_is_held_nothing_is_sent() -> None:
    time = Virtual()
    throttle = throttled(time, most=4)
    throttle.hold(30)
    sent: list[float] = []

    async def ask() -> None:
        async with throttle.slot():
            sent.append(time.now)

    await time.run([asyncio.create_task(ask()) for _ in range(10)])
    assert len(sent) == 10
    assert min(sent) >= 30


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["answered", "overloaded", None]), st.booleans()), max_size=60))
async def test_slots_are_never_lost_whatever_happens_to_whoever_holds_them(ends: list[tuple[str | None, bool]]) -> None:
    time = Virtual()
    throttle = throttled(time, most=3)

    async def ask(ended: str | None) -> None:
        async with throttle.slot() as slot:
            await asyncio.sleep(0)
            slot.ended = ended  # type: ignore[assignment]

    tasks = []
    for ended, cancelled in ends:
        tasks.append(asyncio.create_task(ask(ended)))
        if cancelled:
            await asyncio.sleep(0)
            tasks[-1].cancel()

    async def all_ended() -> None:
        await asyncio.gather(*tasks, return_exceptions=True)
        assert throttle._at_work == 0
        assert 1 <= throttle.limit <= 3
        async with throttle.slot():
            pass

    async with asyncio.timeout(5):
        await time.run([asyncio.create_task(all_ended())])
