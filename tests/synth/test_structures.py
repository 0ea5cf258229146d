"""Environments that are renamed copies of an earlier one are left out, and their tasks go to that one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synth.conftest import TASKS, tree
from synth.lending import METHODS, LendingModel, thing_of

from envscaler.errors import BudgetExhausted, SandboxError
from envscaler.llm.chat import ModelRequest
from envscaler.models import Models
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.store import LibraryStore
from envscaler.synth import SynthReport, SynthSettings, run_synth

Opened = Callable[[LendingModel], Models]

pytestmark = pytest.mark.anyio

BICYCLE, KAYAK, UMBRELLA = "bicycle-lending-desk", "kayak-lending-desk", "umbrella-lending-desk"


class Umbrellas(LendingModel):
    """Its umbrella desk asks for more before it lends something; the others are copies of one another."""

    def write_method(self, inputs: t.WriteMethodInputs) -> Any:
        method = METHODS[inputs.tool.name]
        if inputs.tool.name == "lend_thing" and thing_of(inputs.description.introduction) == "umbrella":
            check = '    if any(one["member_id"] == member_id for one in self.things.values()):\n'
            refusal = '        return {"success": False, "error": "One umbrella each."}\n'
            place = "    self.things[thing_id].update("
            method = method.replace(place, f"{check}{refusal}{place}")
        return f"```python\n{method}\n```"


def settings_of(task_file: Path, library: Path, **more: Any) -> SynthSettings:
    return SynthSettings(
        tasks=task_file, library=library, **{"rounds": 8, "scenarios": 1, "similarity": 0.97, "threshold": 0.5, **more}
    )


async def synth(opened: Opened, settings: SynthSettings, model: LendingModel | None = None) -> SynthReport:
    async with opened(model or Umbrellas()) as models:
        return await run_synth(settings, models, Prompts())


async def test_a_renamed_copy_is_merged_into_the_earlier_environment(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    library = tmp_path / "library"
    report = await synth(opened, settings_of(task_file, library))
    assert report.environments == (BICYCLE, UMBRELLA)
    store = LibraryStore.open(library)
    assert store.env_ids() == (BICYCLE, UMBRELLA)
    assert store.read_index().environments == 2
    assert store.read_environment(BICYCLE).origin.seed_tasks == (TASKS[0], TASKS[2], TASKS[3])
    (merged,) = report.merged
    assert (merged.into, merged.count, merged.by_summary, merged.by_structure) == (BICYCLE, 2, 1, 1)
    assert merged.examples[-1] == f"Kayak lending desk: same structure as {BICYCLE}"
    assert (report.funnel.described, report.funnel.distinct, report.funnel.scenarios) == (4, 2, 2)


async def test_a_second_run_makes_nothing_and_says_the_same(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    library = tmp_path / "library"
    first = await synth(opened, settings_of(task_file, library))
    before = tree(library)
    model = Umbrellas()
    second = await synth(opened, settings_of(task_file, library), model)
    assert model.calls == 0
    assert tree(library) == before
    assert (second.environments, second.merged, second.funnel) == (first.environments, first.merged, first.funnel)


async def test_equal_structures_stay_where_that_is_asked_for_and_ever_after(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    library = tmp_path / "library"
    report = await synth(opened, settings_of(task_file, library, keep_equal_structures=True))
    assert report.environments == (BICYCLE, KAYAK, UMBRELLA)
    again = await synth(opened, settings_of(task_file, library))
    assert again.environments == (BICYCLE, KAYAK, UMBRELLA)


async def test_a_copy_that_was_left_out_is_made_when_it_is_asked_for(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    library = tmp_path / "library"
    await synth(opened, settings_of(task_file, library))
    report = await synth(opened, settings_of(task_file, library, keep_equal_structures=True))
    assert report.environments == (BICYCLE, KAYAK, UMBRELLA)
    assert LibraryStore.open(library).env_ids() == (BICYCLE, KAYAK, UMBRELLA)


async def test_a_copy_takes_the_place_of_an_original_that_was_removed(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    library = tmp_path / "library"
    await synth(opened, settings_of(task_file, library))
    kayaks = tmp_path / "kayaks.txt"
    kayaks.write_text(TASKS[2] + "\n", encoding="utf-8")
    assert (await synth(opened, settings_of(kayaks, library))).environments == ()
    LibraryStore.open(library).remove_environment(BICYCLE)
    assert (await synth(opened, settings_of(kayaks, library))).environments == (KAYAK,)


@pytest.mark.parametrize("at_once", [1, 3])
async def test_which_one_stays_does_not_depend_on_which_is_finished_first(
    at_once: int, task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    await synth(opened, settings_of(task_file, tmp_path / "plain"))
    order = random.Random(at_once)

    async def late(request: ModelRequest) -> None:
        about = getattr(request.inputs, "description", None)
        slow = about is not None and "bicycle" in about.introduction
        await asyncio.sleep(0.01 if slow else order.random() / 500)

    model = Umbrellas()
    model.before_answer = late
    await synth(opened, settings_of(task_file, tmp_path / "late", environments_at_once=at_once), model)
    assert tree(tmp_path / "late") == tree(tmp_path / "plain")


@pytest.mark.parametrize("after", [15, 45, 70, 95])
async def test_a_run_that_was_ended_resumes_to_the_same_bytes(
    after: int, task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    await synth(opened, settings_of(task_file, tmp_path / "plain"))
    library = tmp_path / "ended"
    model = Umbrellas()

    async def end(request: ModelRequest) -> None:
        if model.calls > after:
            raise BudgetExhausted("used up")
        # The bicycle desk comes first and is finished last.
        about = getattr(request.inputs, "description", None)
        if about is not None and "bicycle" in about.introduction:
            await asyncio.sleep(0.01)

    model.before_answer = end
    with pytest.raises(BudgetExhausted):
        await synth(opened, settings_of(task_file, library), model)
    report = await synth(opened, settings_of(task_file, library))
    assert report.environments == (BICYCLE, UMBRELLA)
    assert tree(library) == tree(tmp_path / "plain")


async def test_a_copy_stays_out_of_a_report_that_an_earlier_environment_is_missing_from(
    tmp_path: Path, opened: Opened
) -> None:
    class Broken(Umbrellas):
        def write_method(self, inputs: t.WriteMethodInputs) -> Any:
            raise SandboxError("the machine is gone")

    task_file, library = tmp_path / "tasks.txt", tmp_path / "library"
    task_file.write_text("\n".join((TASKS[4], TASKS[0], TASKS[2])) + "\n", encoding="utf-8")
    assert (await synth(opened, settings_of(task_file, library))).environments == (UMBRELLA, BICYCLE)
    LibraryStore.open(library).remove_environment(UMBRELLA)
    report = await synth(opened, settings_of(task_file, library), Broken())
    assert report.environments == (BICYCLE,) == LibraryStore.open(library).env_ids()
    (merged,) = report.merged
    assert (merged.into, merged.by_structure) == (BICYCLE, 1)
