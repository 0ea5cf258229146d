"""Tests of repair: a method whose calls fail is written anew, and only what is better takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synth.conftest import settings_of, synth, tree
from synth.lending import METHODS, LendingModel, Variant

from envscaler.assessment import Assessment
from envscaler.errors import BudgetExhausted
from envscaler.llm.chat import ModelRequest
from envscaler.models import Models
from envscaler.program import method_source, replace_method
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.sandbox import Sandbox
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore
from envscaler.synth import SynthSettings
from envscaler.synth.asking import Asking
from envscaler.synth.assess import Terms
from envscaler.synth.repair import assess_and_repair

Opened = Callable[[LendingModel], Models]

pytestmark = pytest.mark.anyio

GOOD = METHODS["lend_thing"]
HALF = GOOD.replace('update(status="lent", member_id=member_id)', 'update(status="lent")')
"""Lends a thing to nobody."""
BROKEN = "lend_thing broke the rule: A lent thing is lent to somebody."
REFUSING = GOOD.replace('!= "free"', '== "free"')
"""Lends only what is lent."""
CARELESS = GOOD.replace("if not isinstance(thing_id, str) or thing_id not in self.things:", "if thing_id is None:")
"""Raises where there is no such thing."""
UNDEFINED = GOOD.replace("self.things[thing_id].update", "things[thing_id].update")
WRITING = METHODS["find_member"].replace("    for member", "    self.next_number += 1\n    for member", 1)
"""A query that counts its calls in the state."""
SHARING = """
def _named(self, name):
    return next((member for member in self.members.values() if member["name"] == name), None)

def find_member(self, name: str) -> dict[str, Any]:
    member = self._named(name)
    if member is None:
        return {"success": False, "error": f"There is no member named {name!r}."}
    return {"success": True, "data": dict(member)}
"""
"""Leans on a method that is no tool."""
INTRUDING = f"""{GOOD}

def _named(self, name):
    return None
"""
"""Brings another method of that name along."""


class Builder(LendingModel):
    """Answers a complaint with the next of the versions of that tool, in the end with the last again and again."""

    def __init__(self, **versions: str | list[str]) -> None:
        super().__init__()
        self.versions = {name: [one] if isinstance(one, str) else list(one) for name, one in versions.items()}
        self.complaints: list[t.WriteMethodInputs] = []

    def write_method(self, inputs: t.WriteMethodInputs) -> Any:
        if inputs.fault is None:
            return super().write_method(inputs)
        self.complaints.append(inputs)
        left = self.versions.get(inputs.tool.name)
        if left is None:
            return f"```python\n{inputs.previous}\n```"
        return f"```python\n{left.pop(0) if len(left) > 1 else left[0]}\n```"

    def judge_call(self, inputs: t.JudgeCallInputs) -> Any:
        """Right is what the methods of the fake model do."""
        places = {change.pointer.rpartition("/")[2] for change in inputs.changes}
        succeeded = isinstance(inputs.result, dict) and inputs.result["success"]
        if inputs.error is not None:
            fault = f"it raised {inputs.error}"
        elif succeeded and inputs.tool.name == "lend_thing" and places != {"status", "member_id"}:
            fault = "the thing is lent to nobody"
        elif not succeeded and inputs.tool.name == "lend_thing" and inputs.case == "positive":
            free = inputs.before["things"].get(inputs.call.arguments["thing_id"], {}).get("status") == "free"
            fault = "a free thing was not lent" if free else ""
        else:
            fault = ""
        return {"reason": fault or "right", "verdict": "fail" if fault else "pass"}


def with_method(skeleton: EnvSkeleton, name: str, code: str) -> EnvSkeleton:
    return skeleton.model_copy(update={"source": replace_method(skeleton.source, skeleton.class_name, name, code)})


async def repaired(
    skeleton: EnvSkeleton, model: LendingModel, opened: Opened, *, repairs: int = 2, rounds: int = 40
) -> tuple[EnvSkeleton, Assessment]:
    terms = Terms(rounds=rounds, threshold=0.85, by="pass")
    async with opened(model) as models, Sandbox() as sandbox:
        asking = Asking(models, Prompts(), 2)
        return await assess_and_repair(skeleton, terms, repairs=repairs, seed=3, asking=asking, sandbox=sandbox)


async def test_a_method_whose_calls_fail_is_repaired(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = Builder(lend_thing=GOOD)
    made, assessment = await repaired(with_method(skeleton, "lend_thing", HALF), model, opened)
    assert made.source == skeleton.source
    assert assessment.env_digest == made.digest
    assert assessment.accepted
    assert assessment.by_tool["lend_thing"].failed == 0
    (repair,) = assessment.repairs
    assert (repair.tool, repair.attempts, repair.accepted, repair.refused, repair.dropped) == (
        "lend_thing",
        1,
        1,
        (),
        None,
    )
    assert {case.reason for case in repair.before if case.verdict == "fail"} == {BROKEN}
    assert [finding.detail for finding in repair.found] == [BROKEN]
    assert assessment.at_fault == ()
    fresh = [case for case in assessment.cases if case.call.name == "lend_thing"]
    assert len(fresh) >= len(repair.before)
    assert not {case.round for case in fresh} & {case.round for case in repair.before}


async def test_the_builder_is_told_call_change_and_reason_and_no_whole_state(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    model = Builder(lend_thing=GOOD)
    await repaired(with_method(skeleton, "lend_thing", HALF), model, opened)
    (complaint,) = model.complaints
    assert complaint.previous is not None
    assert 'update(status="lent")' in complaint.previous
    assert "def find_member" not in complaint.class_source
    assert "self.members" in complaint.class_source
    fault = complaint.fault or ""
    assert 'lend_thing(**{"member_id":"M-1","thing_id":"T-2"})' in fault
    assert "has to succeed" in fault
    assert '/things/T-2 = {"label":' in fault
    assert 'changed /things/T-2/status from "free" to "lent"' in fault
    assert f"what is wrong: {BROKEN}" in fault
    assert "These calls of it show what is wrong." in fault
    assert '"members":' not in fault


async def test_what_an_oracle_finds_is_repaired_and_tried_with_it(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = Builder(find_member=[WRITING.replace("+= 1", "+= 2"), METHODS["find_member"]])
    made, assessment = await repaired(with_method(skeleton, "find_member", WRITING), model, opened)
    assert made.source == skeleton.source
    (repair,) = assessment.repairs
    assert (repair.attempts, repair.accepted) == (2, 1)
    assert "changed the state" in repair.refused[0]
    assert "Another version was refused" in (model.complaints[1].fault or "")
    assert assessment.by_tool["find_member"].failed == 0


async def test_a_version_that_makes_it_worse_is_refused(skeleton: EnvSkeleton, opened: Opened) -> None:
    planted = with_method(skeleton, "lend_thing", CARELESS)
    made, assessment = await repaired(planted, Builder(lend_thing=[REFUSING, UNDEFINED]), opened)
    (repair,) = assessment.repairs
    assert (repair.attempts, repair.accepted) == (2, 0)
    assert "free thing was not lent" in repair.refused[0]
    assert "things" in repair.refused[1]
    assert "KeyError" in (repair.dropped or "")
    assert "lend_thing" not in {tool.name for tool in made.tools}


async def test_a_version_that_breaks_another_tool_is_refused(skeleton: EnvSkeleton, opened: Opened) -> None:
    sharing = with_method(skeleton, "find_member", SHARING)
    planted = with_method(sharing, "lend_thing", HALF)
    made, assessment = await repaired(planted, Builder(lend_thing=[INTRUDING, GOOD]), opened)
    assert made.source == sharing.source
    (repair,) = assessment.repairs
    assert (repair.attempts, repair.accepted) == (2, 1)
    assert repair.refused == ("find_member no longer does what was right",)


async def test_a_tool_that_cannot_be_repaired_costs_itself_when_the_rest_is_good(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    planted = with_method(skeleton, "find_member", WRITING)
    model = Builder()
    made, assessment = await repaired(planted, model, opened)
    assert len(model.complaints) == 1  # the same again: no other will come
    assert [tool.name for tool in made.tools] == ["find_things", "lend_thing", "add_thing"]
    assert "def find_member" not in made.source
    assert assessment.env_digest == made.digest
    assert assessment.accepted
    (repair,) = assessment.repairs
    assert repair.refused == ("the method was written as it had been",)
    assert "changed the state" in (repair.dropped or "")
    assert {case.verdict for case in repair.before} == {"fail"}
    assert "find_member" not in assessment.by_tool


async def test_no_tool_is_given_up_that_the_environment_needs(skeleton: EnvSkeleton, opened: Opened) -> None:
    only = with_method(skeleton, "find_member", WRITING)
    only = only.model_copy(update={"tools": tuple(tool for tool in only.tools if tool.name != "find_things")})
    made, assessment = await repaired(only, Builder(), opened)
    assert made == only
    assert not assessment.accepted
    assert assessment.repairs[0].dropped is None


async def test_a_hopeless_environment_is_only_rejected(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = Variant(judge_call=lambda inputs, usual: {"reason": "no", "verdict": "fail"})
    made, assessment = await repaired(skeleton, model, opened)
    assert made == skeleton
    assert not assessment.accepted
    # Whether things are found right, oracles tell.
    assert [(one.tool, one.attempts) for one in assessment.repairs] == [
        ("find_member", 1),
        ("lend_thing", 1),
        ("add_thing", 1),
    ]
    assert model.asked["write_method"] == 3


async def test_nothing_is_repaired_where_nothing_is_to_be(skeleton: EnvSkeleton, opened: Opened) -> None:
    planted = with_method(skeleton, "lend_thing", HALF)
    model = Builder(lend_thing=GOOD)
    made, assessment = await repaired(planted, model, opened, repairs=0)
    assert made == planted
    assert assessment.repairs == ()
    assert model.complaints == []


# -- what is found without test calls --


class Complacent(Builder):
    """Tests nothing but members that are there, and finds everything right."""

    def test_call(self, inputs: t.TestCallInputs) -> Any:
        usual = super().test_call(inputs)
        if inputs.tool.name == "find_things":
            usual["arguments"] = {}
        return usual

    def judge_call(self, inputs: t.JudgeCallInputs) -> Any:
        return {"reason": "right", "verdict": "pass"}


DEAF = METHODS["find_things"].replace('if status in (None, thing["status"])', "")
"""Lists all things whatever is asked for; no test call of the tester above asks for any."""
SHOWN = "find_things returned"


async def test_a_fault_that_no_test_call_shows_is_found_and_counts_as_a_call_that_failed(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    planted = with_method(skeleton, "find_things", DEAF)
    made, assessment = await repaired(planted, Complacent(), opened, repairs=0)
    assert made == planted
    (faulty,) = assessment.at_fault
    assert (faulty.tool, faulty.verdict) == ("find_things", "fail")
    (fault,) = faulty.faults
    assert fault.oracle == "filter_ignored"
    assert fault.detail.startswith(SHOWN)
    assert fault.call is not None
    assert "status" in fault.call.arguments
    assert {case.verdict for case in assessment.cases} == {"pass"}
    assert assessment.counts.failed == assessment.by_tool["find_things"].failed == 1
    assert [one.tool for one in assessment.examined or ()] == [tool.name for tool in skeleton.tools]


async def test_a_fault_that_no_test_call_shows_goes_into_repair(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = Complacent(
        find_things=[DEAF.replace("    found", "    status = None\n    found", 1), METHODS["find_things"]]
    )
    made, assessment = await repaired(with_method(skeleton, "find_things", DEAF), model, opened)
    assert made.source == skeleton.source
    assert SHOWN in (model.complaints[0].fault or "")
    (repair,) = assessment.repairs
    assert (repair.tool, repair.attempts, repair.accepted) == ("find_things", 2, 1)
    assert SHOWN in repair.refused[0]
    assert [finding.oracle for finding in repair.found] == ["filter_ignored"]
    assert assessment.at_fault == ()
    assert assessment.counts.failed == 0


async def test_a_tool_that_keeps_such_a_fault_is_given_up_though_its_calls_pass(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    made, assessment = await repaired(with_method(skeleton, "find_things", DEAF), Complacent(), opened)
    assert [tool.name for tool in made.tools] == ["find_member", "lend_thing", "add_thing"]
    (repair,) = assessment.repairs
    assert (repair.dropped or "").startswith(SHOWN)
    assert [finding.oracle for finding in repair.found] == ["filter_ignored"]
    assert assessment.accepted
    assert assessment.at_fault == ()


async def test_results_that_are_parts_of_the_state_are_copied_without_asking_anybody(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    planted = with_method(skeleton, "find_member", METHODS["find_member"].replace("copy.deepcopy(member)", "member"))
    _, as_it_is = await repaired(planted, Builder(), opened, repairs=0)
    assert as_it_is.at_fault == ()
    assert [one.tool for one in as_it_is.examined or () for remark in one.remarks] == ["find_member"]
    model = Builder()
    made, assessment = await repaired(planted, model, opened)
    assert model.asked["write_method"] == 0
    assert made.source == skeleton.source
    assert all(one.remarks == () for one in assessment.examined or ())
    (repair,) = assessment.repairs
    assert (repair.tool, repair.attempts, repair.accepted) == ("find_member", 0, 1)
    assert [finding.oracle for finding in repair.found] == ["aliased_result"]


# -- as part of a synthesis --


class Desk(Builder):
    """Programs lending half; repairs it when told."""

    def __init__(self) -> None:
        super().__init__(lend_thing=GOOD)

    def write_method(self, inputs: t.WriteMethodInputs) -> Any:
        usual = super().write_method(inputs)
        return f"```python\n{HALF}\n```" if inputs.fault is None and inputs.tool.name == "lend_thing" else usual


def one_desk(task_file: Path, library: Path) -> SynthSettings:
    return settings_of(task_file, library, limit=1, rounds=16, scenarios=1)


async def test_synthesis_keeps_what_it_could_repair_and_says_so(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    report = await synth(opened, Desk(), one_desk(task_file, tmp_path / "library"))
    assert report.funnel.accepted == report.funnel.solved == 1
    assert (report.testing.repaired, report.testing.dropped) == (1, 0)
    assert report.testing.counts.calls == 16
    assert report.testing.negative.by_oracle > 0
    assert 0 < report.testing.positive.by_oracle < report.testing.positive.calls
    store = LibraryStore.open(tmp_path / "library")
    skeleton = store.read_environment("bicycle-lending-desk")
    assert "member_id=member_id" in method_source(skeleton.source, skeleton.class_name, "lend_thing")
    assessment = store.read_assessment("bicycle-lending-desk")
    assert assessment is not None
    assert assessment.env_digest == skeleton.digest
    assert [one.accepted for one in assessment.repairs] == [1]
    again = Desk()
    await synth(opened, again, one_desk(task_file, tmp_path / "library"))
    assert again.calls == 0


async def test_a_synthesis_ended_in_the_middle_of_a_repair_resumes_to_the_same(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    await synth(opened, Desk(), one_desk(task_file, tmp_path / "straight"))
    for name, role in (("asked", "write_method"), ("judged", "judge_call")):
        stopped, library = Desk(), tmp_path / name

        async def stop(request: ModelRequest, stopped: Desk = stopped, role: str = role) -> None:
            await asyncio.sleep(0)
            if request.role == role and (stopped.complaints or getattr(request.inputs, "fault", None)):
                raise BudgetExhausted("used up")

        stopped.before_answer = stop
        with pytest.raises(BudgetExhausted):
            await synth(opened, stopped, one_desk(task_file, library))
        await synth(opened, Desk(), one_desk(task_file, library))
        assert tree(library) == tree(tmp_path / "straight")
