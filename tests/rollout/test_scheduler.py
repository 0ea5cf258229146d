"""The ready queue: nobody waits for another, room may change, what is cut short comes again, turns are fair."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

import pytest
from env.lending import scenario, skeleton
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.rollout.plan import Assignment, Plan, assignments
from envscaler.rollout.scheduler import Scheduler

pytestmark = pytest.mark.anyio


async def test_a_slow_episode_holds_up_no_other() -> None:
    others_done = asyncio.Event()
    done: list[int] = []

    async def play(work: int, may_repeat: bool) -> bool:
        if work == 0:
            await others_done.wait()
        done.append(work)
        if len(done) == 199:
            others_done.set()
        return False

    async with asyncio.timeout(60):
        await Scheduler(range(200), lambda: 2).run(play)
    assert done[-1] == 0
    assert sorted(done) == list(range(200))


async def test_room_that_grows_is_used_although_nothing_ends() -> None:
    room, begun = 1, 0
    all_begun = asyncio.Event()

    async def play(work: int, may_repeat: bool) -> bool:
        nonlocal room, begun
        begun += 1
        room = 5
        if begun == 5:
            all_begun.set()
        await all_begun.wait()
        return False

    scheduler = Scheduler(range(20), lambda: room)
    async with asyncio.timeout(60):
        await scheduler.run(play)
    assert (begun, scheduler.peak) == (20, 5)


async def test_what_is_cut_short_comes_again_behind_all_others_and_not_for_ever() -> None:
    played: list[int] = []
    last: list[bool] = []

    async def play(work: int, may_repeat: bool) -> bool:
        played.append(work)
        if work == 0:
            last.append(may_repeat)
            return True
        return False

    await Scheduler(range(4), lambda: 1, pauses_s=(0.0, 0.01)).run(play)
    assert played == [0, 1, 2, 3, 0, 0]
    assert last == [True, True, False]


async def test_a_stop_begins_nothing_more_and_lets_what_is_in_play_end() -> None:
    ended: list[int] = []

    async def play(work: int, may_repeat: bool) -> bool:
        if work == 2:
            scheduler.stop()
        await asyncio.sleep(0.01)
        ended.append(work)
        return True

    scheduler = Scheduler(range(100), lambda: 3, pauses_s=(0.0,))
    await scheduler.run(play)
    assert sorted(ended) == [0, 1, 2]


async def test_what_is_raised_comes_out_as_it_is_and_nothing_goes_on() -> None:
    cancelled = 0

    async def play(work: int, may_repeat: bool) -> bool:
        nonlocal cancelled
        if work == 3:
            raise KeyError("as it is")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled += 1
            raise
        return False

    with pytest.raises(KeyError, match="as it is"):
        await Scheduler(range(10), lambda: 4).run(play)
    assert cancelled == 3


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 3), max_size=30),
    st.integers(1, 7),
    st.integers(0, 3),
)
async def test_all_is_played_as_often_as_it_has_to_be(failures: list[int], room: int, repeats: int) -> None:
    times: Counter[int] = Counter()
    in_play = most = 0

    async def play(work: int, may_repeat: bool) -> bool:
        nonlocal in_play, most
        in_play += 1
        most = max(most, in_play)
        await asyncio.sleep(0)
        in_play -= 1
        times[work] += 1
        assert may_repeat == (times[work] <= repeats)
        return times[work] <= failures[work]

    await Scheduler(range(len(failures)), lambda: room, pauses_s=(0.0,) * repeats).run(play)
    assert times == {work: min(wanted, repeats) + 1 for work, wanted in enumerate(failures)}
    assert most <= room


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(1, 4), st.integers(1, 4))
def test_samples_stay_together_and_environments_take_turns(counts: list[int], samples: int, at_once: int) -> None:
    playable = []
    for number, count in enumerate(counts):
        environment = skeleton(id=f"desk-{number}")
        playable += [(environment, scenario(environment, index)) for index in range(count)]
    begun = list(assignments(playable, samples, at_once=at_once))
    assert len({part.key for part in begun}) == len(begun) == samples * len(playable)
    groups = [begun[start : start + samples] for start in range(0, len(begun), samples)]
    for group in groups:
        assert [part.sample for part in group] == list(range(samples))
        assert len({part.place for part in group}) == 1
    order = [group[0].skeleton.id for group in groups]
    last_seen = {env_id: max(place for place, other in enumerate(order) if other == env_id) for env_id in order}
    for place in range(len(order)):
        unfinished = {other for other in order[: place + 1] if last_seen[other] >= place}
        assert len(unfinished) <= at_once
    for env_id in set(order):
        places = [place for place, other in enumerate(order) if other == env_id]
        # Between two turns of one environment each other has at most one.
        assert all(len(set(order[one + 1 : two])) == two - one - 1 for one, two in pairwise(places))


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_names_of_what_is_asked_for_are_known_without_listing_them(sample: int, samples: int) -> None:
    desk = skeleton()
    spaced = scenario(desk).model_copy(update={"id": "a scenario 7"})
    plan = Plan(playable=[(desk, spaced)])
    played = Assignment(desk, spaced, sample)
    edited = Assignment(desk, spaced.model_copy(update={"task": "Another."}), sample)
    assert plan.names(samples, ())(played.name) == (sample < samples)
    assert not plan.names(samples, {played.key})(played.name)
    assert not plan.names(samples, ())(edited.name)
