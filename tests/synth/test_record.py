"""Tests of the record of a run: it tells the same however often the run was interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synth.conftest import settings_of, synth
from synth.lending import LendingModel

from envscaler.errors import BudgetExhausted
from envscaler.llm.chat import ModelRequest
from envscaler.models import Models
from envscaler.roles import types as t
from envscaler.synth.record import SynthRecord

Opened = Callable[[LendingModel], Models]

pytestmark = pytest.mark.anyio


class Careless(LendingModel):
    """Never plans the tools of kayaks, and forgets a field the first time that it plans those of bicycles; closes no
    fence of a state class."""

    def __init__(self) -> None:
        super().__init__()
        self.first = True

    async def complete(self, request: ModelRequest) -> Any:
        self.first = request.sample[1] == 0
        return await super().complete(request)

    def plan_tools(self, inputs: t.PlanToolsInputs) -> Any:
        if "Kayak" in inputs.description.summary:
            return "I would rather not."
        return {"tool": []} if self.first and "Bicycle" in inputs.description.summary else super().plan_tools(inputs)

    def write_class(self, inputs: t.WriteClassInputs) -> Any:
        return super().write_class(inputs).rstrip().removesuffix("```")


def record_in(library: Path) -> SynthRecord:
    (path,) = (library / ".cache/runs").glob("*/run.json")
    kept = json.loads(path.read_text(encoding="utf-8"))
    del kept["schema_version"]
    return SynthRecord.model_validate(kept)


OF_ONE_RUN = {"resumed", "spent", "reused", "faults", "library", "record"}


async def test_the_record_is_the_same_after_an_interruption(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    report = await synth(opened, Careless(), settings_of(task_file, straight, until="program"))
    assert [(one.role, one.kind, one.count) for one in report.unusable] == [
        ("plan_tools", "unreadable", 3),
        ("plan_tools", "misshapen", 1),
    ]
    assert "I would rather not" in report.unusable[0].examples[0]
    assert [(one.stage, one.role, one.mending, one.count) for one in report.mended] == [
        ("program", "write_class", "unclosed fence", 2)
    ]
    assert report.faults.mended == {"unclosed fence": 2}
    assert (report.funnel.designed, report.funnel.loads, report.funnel.programmed) == (2, 2, 2)
    # Three states; tools at the third attempt in vain, at the second, and at once: all of them were paid for.
    assert report.use["design"].calls == 3 + 3 + 2 + 1

    settings = settings_of(task_file, stopped, until="program")
    for after in (12, 9):
        model = Careless()
        left = [after]

        async def stop(request: ModelRequest, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise BudgetExhausted("used up")

        model.before_answer = stop
        with pytest.raises(BudgetExhausted):
            await synth(opened, model, settings)
        assert record_in(stopped).ended == "stopped"
    again = await synth(opened, Careless(), settings)
    kept = record_in(stopped)
    assert (kept.ended, kept.report) == ("complete", again)
    assert again.model_dump(exclude=OF_ONE_RUN) == report.model_dump(exclude=OF_ONE_RUN)
    assert kept.spent.roles["write_class"].mended["unclosed fence"] >= 2
    assert kept.spent.spent.calls > report.spent.calls
