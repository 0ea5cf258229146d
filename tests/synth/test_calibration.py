"""Pass rates: played as rollouts, written into scenarios that stay what they are, drawn by band."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from env.lending import scenario, skeleton

from envscaler.env import Library, open_library
from envscaler.errors import BudgetExhausted
from envscaler.llm.chat import ModelRequest
from envscaler.llm.metering import Budget
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage
from envscaler.models import Models, ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.rollout import RolloutSettings
from envscaler.scenario import Calibration
from envscaler.store import LibraryStore
from envscaler.synth.calibration import run_calibrate
from envscaler.synth.curriculum import Band, draw_curriculum


def make(path: Path) -> Library:
    """Four scenarios; the number in its task says in how many of four samples the model below solves it."""
    store = LibraryStore.create(path)
    desk = skeleton(id="desk")
    store.write_environment(desk, None, [scenario(desk, n, task=f"Lend Emma to Ann: {n}") for n in (0, 1, 3, 4)])
    store.write_index({})
    return open_library(path)


def sometimes(request: ModelRequest) -> Scripted:
    able = int(str(request.messages[1].content)[-1])
    if isinstance(request.messages[-1], ToolMessage) or request.sample[0] % 4 >= able:
        return "Done."
    return AssistantMessage(tool_calls=(ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"}),))


def models(script: Any = sometimes, budget: Budget | None = None) -> Models:
    return open_models(ModelSettings(), budget=budget, offline=ScriptedModel(script, name="m"))


def rates(library: Library) -> dict[str, Calibration | None]:
    return {one.task[-1]: one.calibration for one in library.store.scenarios("desk")}


async def calibrated(library: Library, samples: int = 4, **changes: Any) -> Any:
    return await run_calibrate(library, RolloutSettings(samples=samples), models(), Prompts(), **changes)


@pytest.mark.anyio
async def test_every_scenario_gets_the_share_of_its_episodes_that_were_solved(tmp_path: Path) -> None:
    library = make(tmp_path / "L")
    before = {one.id: one.digest for one in library.store.scenarios("desk")}
    report = await calibrated(library, band=Band(low=0.5))
    found = rates(library)
    assert {task: (one.solved, one.samples, one.model) for task, one in found.items() if one} == {
        "0": (0, 4, "m"),
        "1": (1, 4, "m"),
        "3": (3, 4, "m"),
        "4": (4, 4, "m"),
    }
    assert found["1"] is not None
    assert found["1"].reward == pytest.approx((1 + 3 * (1 / 3)) / 4)
    assert found["1"].settings == report.run.name
    assert report.solved == {"0/4": 1, "1/4": 1, "3/4": 1, "4/4": 1}
    assert (report.never, report.always, report.in_band, report.short, report.unjudged) == (1, 1, 1, 0, 0)
    assert {one.id: one.digest for one in library.store.scenarios("desk")} == before


@pytest.mark.anyio
async def test_the_same_call_plays_nothing_again_and_more_samples_extend_it(tmp_path: Path) -> None:
    library = make(tmp_path / "L")
    assert (await calibrated(library, 2)).played == 8
    again = await calibrated(library, 2)
    assert (again.played, again.calibrated) == (0, 4)
    more = await calibrated(library, 4)
    assert more.played == 8
    assert (more.solved, more.run) == ({"0/4": 1, "1/4": 1, "3/4": 1, "4/4": 1}, again.run)


@pytest.mark.anyio
async def test_an_edited_scenario_is_not_given_the_rate_of_what_it_was(tmp_path: Path) -> None:
    library = make(tmp_path / "L")
    await calibrated(library)
    edited = [
        one.model_copy(update={"task": "Something else: 0", "calibration": None}) if one.task[-1] == "4" else one
        for one in library.store.scenarios("desk")
    ]
    library.store.replace_scenarios("desk", edited)
    await calibrated(open_library(library.path))
    assert [one.calibration.solved for one in library.store.scenarios("desk") if one.calibration] == [0, 1, 3, 0]


@pytest.mark.anyio
async def test_a_budget_keeps_what_was_played_and_writes_no_half_rates(tmp_path: Path) -> None:
    library = make(tmp_path / "L")
    with pytest.raises(BudgetExhausted):
        await run_calibrate(
            library, RolloutSettings(samples=4, concurrency=1), models(budget=Budget(max_calls=9)), Prompts()
        )
    assert set(rates(library).values()) == {None}
    report = await calibrated(library)
    assert 0 < report.played < 16
    assert report.calibrated == 4


@pytest.mark.anyio
async def test_what_is_never_or_always_solved_is_in_no_curriculum(tmp_path: Path) -> None:
    library = make(tmp_path / "L")
    await calibrated(library)
    store = library.store
    assert [one.pass_rate for one in draw_curriculum(store, Band(), model="m").scenarios] == [0.75, 0.25]
    whole = draw_curriculum(store, Band(extremes=True), model="m")
    assert [one.pass_rate for one in whole.scenarios] == [1.0, 0.75, 0.25, 0.0]
    assert [one.pass_rate for one in draw_curriculum(store, Band.parse("0.5:1"), model="m").scenarios] == [0.75]
