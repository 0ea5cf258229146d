"""Tests that a target is met exactly, in the drawn order, whatever fails and whenever it is done."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synth.conftest import TASKS, settings_of, synth, tree
from synth.lending import LendingModel

from envscaler.engine import bounded_map
from envscaler.llm.chat import ModelRequest
from envscaler.models import Models
from envscaler.roles import types as t
from envscaler.store import LibraryStore
from envscaler.synth.target import Gate, drawn

Opened = Callable[[LendingModel], Models]


async def begun_by(gate: Gate, fails: list[bool], at_once: int, rng: random.Random) -> list[int]:
    """The inputs that are begun when each takes its own time and fails as told."""
    begun: list[int] = []

    async def inputs() -> AsyncIterator[int]:
        for index in range(len(fails)):
            if not await gate.opens():
                return
            gate.begin()
            begun.append(index)
            yield index

    async def make(index: int) -> int:
        for _ in range(rng.randrange(5)):
            await asyncio.sleep(0)
        if fails[index] and rng.random() < 0.5:
            gate.give_up(str(index))
        return index

    async for index in bounded_map(make, inputs(), limit=at_once, window=1000):
        if fails[index]:
            gate.give_up(str(index))
        gate.end()
    return begun


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.booleans(), max_size=30),
    st.integers(min_value=1, max_value=8),
    st.integers(min_value=1, max_value=6),
    st.randoms(use_true_random=False),
)
def test_the_shortest_beginning_with_enough_that_do_not_fail_is_begun(
    fails: list[bool], wanted: int, at_once: int, rng: random.Random
) -> None:
    gate = Gate(wanted)
    begun = asyncio.run(begun_by(gate, fails, at_once, rng))
    good = [index for index, failed in enumerate(fails) if not failed]
    expected = good[wanted - 1] + 1 if len(good) >= wanted else len(fails)
    assert begun == list(range(expected))
    target = gate.target(len(fails) - len(begun))
    assert target is not None
    assert (target.accepted, target.reached) == (min(wanted, len(good)), len(good) >= wanted)


@pytest.mark.anyio
async def test_nothing_is_made_in_place_of_what_infrastructure_failed() -> None:
    gate = Gate(1)
    gate.begin()
    gate.end(lost=True)
    assert not await gate.opens()
    target = gate.target(3)
    assert target is not None
    assert (target.accepted, target.waiting, target.reached) == (0, 1, False)


@settings(deadline=None, max_examples=40)
@given(st.sets(st.text(), max_size=8), st.text(), st.integers())
def test_a_further_input_leaves_the_order_of_the_others(texts: set[str], further: str, seed: int) -> None:
    before = drawn(sorted(texts), seed)
    after = drawn(sorted({*texts, further}), seed)
    assert [text for text in after if text in texts] == list(before)


class NoKayaks(LendingModel):
    def plan_tools(self, inputs: t.PlanToolsInputs) -> Any:
        return "I would rather not." if "Kayak" in inputs.description.summary else super().plan_tools(inputs)


def _made(kinds: int, seed: int) -> list[str]:
    """The desks that the first tasks of the drawn order give, so many, without kayaks."""
    things = [thing for text in drawn(TASKS, seed) for thing in ("bicycle", "umbrella") if thing in text]
    return [f"{thing}-lending-desk" for thing in dict.fromkeys(things)][:kinds]


@pytest.mark.anyio
async def test_a_target_is_met_and_a_higher_one_extends_the_library(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    library = tmp_path / "library"
    one = settings_of(task_file, library, target=1, until="program", seed=3)
    first = await synth(opened, NoKayaks(), one)
    assert first.target is not None
    assert (first.target.accepted, first.target.reached) == (1, True)
    assert first.target.tasks_left == len(TASKS) - first.funnel.tasks
    assert list(first.environments) == _made(1, seed=3)
    assert LibraryStore.open(library).env_ids() == first.environments
    before = tree(library)
    again = NoKayaks()
    assert (await synth(opened, again, one)).environments == first.environments
    assert (again.calls, tree(library)) == (0, before)
    second = await synth(opened, NoKayaks(), settings_of(task_file, library, target=2, until="program", seed=3))
    assert list(second.environments) == _made(2, seed=3)
    straight = tmp_path / "straight"
    await synth(opened, NoKayaks(), settings_of(task_file, straight, target=2, until="program", seed=3))
    environments = {name: text for name, text in tree(library).items() if name != "library.json"}
    assert {name: text for name, text in tree(straight).items() if name != "library.json"} == environments


@pytest.mark.anyio
async def test_a_target_beyond_the_tasks_takes_all_of_them(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    settings = settings_of(task_file, tmp_path / "library", target=5, until="discover")
    report = await synth(opened, LendingModel(), settings)
    assert report.target is not None
    assert (report.target.accepted, report.target.tasks_left, report.target.reached) == (3, 0, False)
    assert report.funnel.tasks == len(TASKS)


def test_a_target_and_clusters_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        settings_of(tmp_path / "tasks.jsonl", tmp_path / "library", target=2, clusters=2)


class Slow(LendingModel):
    """Never answers the first question about a program, the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.before_answer = self._wait

    async def _wait(self, request: ModelRequest) -> None:
        if request.role == "write_class" and self.asked["write_class"] == 1:
            await asyncio.Event().wait()


@pytest.mark.anyio
async def test_an_environment_that_takes_too_long_is_left_to_the_next_run(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    model = Slow()
    settings = settings_of(task_file, tmp_path / "library", environment_minutes=0.4, until="assess")
    first = await synth(opened, model, settings)
    assert len(first.environments) == 2
    (slow,) = [one for one in first.dropped if one.reason.startswith("infrastructure")]
    assert "not finished after 0.4 minutes" in slow.examples[0]
    again = await synth(opened, model, settings.model_copy(update={"environment_minutes": None}))
    assert len(again.environments) == 3
    untouched = await synth(opened, LendingModel(), settings_of(task_file, tmp_path / "other", until="assess"))
    assert again.funnel == untouched.funnel
    assert tree(tmp_path / "library") == tree(tmp_path / "other")


@pytest.mark.anyio
async def test_so_many_environments_are_begun_whatever_becomes_of_them(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    class Failing(LendingModel):
        def plan_state(self, inputs: t.PlanStateInputs) -> Any:
            return "no"

        def name_entities(self, inputs: t.PlanStateInputs) -> Any:
            return "no"

    report = await synth(opened, Failing(), settings_of(task_file, tmp_path / "library", environments=2))
    assert (report.funnel.distinct, report.funnel.designed) == (2, 0)
    assert report.target is None
