"""One environment of the authors' pipeline, replayed through our stages from what GPT-4.1 replied to theirs.

What our checks find in it, confirmed by hand (method, and what is wrong with it):

- `correct_allergy_audit_fields` writes `recorded_by` into the stored record before it looks at `recorded_at`; with a
  bad time it then refuses the call, and the new author stays. The recorded checker saw the same in three calls, called
  a fourth, whose author was the one that stood there already, a warning, and the environment was kept with the fault.
- All queries hand out the stored records themselves (`list_all_allergy_records` in a new list, `get_patient_by_id` and
  its like as they are): whoever changes a result under plain Python changes the state. It is mended by code. Of
  `search_allergy_records_by_allergen`, which does the same, nothing is said: no word that is drawn finds a record.
- The state plan cut words off (`active_sta`, `ncounter_id`); the class written from it has them whole.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synth.walkthrough import Walkthrough

from envscaler.assessment import Assessment
from envscaler.models import ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.sandbox import Sandbox
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore
from envscaler.synth import SynthReport, SynthSettings, run_synth
from envscaler.synth.asking import Asking
from envscaler.synth.assess import Terms, assess

QUERIES = {
    "filter_allergy_records_by_status",
    "get_allergy_record_by_id",
    "get_clinician_by_id",
    "get_encounter_by_id",
    "get_patient_by_id",
    "list_all_allergy_records",
    "list_allergy_records_by_patient",
    "list_encounters_by_patient",
    "list_verified_allergy_records",
}
"""Queries of which a result was seen to be a part of the state."""
FAULTY = "correct_allergy_audit_fields"


@pytest.fixture
def walkthrough(shared_data: Path) -> Walkthrough:
    return Walkthrough(shared_data / "data" / "walkthrough")


async def synthesized(walkthrough: Walkthrough, folder: Path) -> SynthReport:
    tasks = folder / "tasks.jsonl"
    tasks.write_text(json.dumps({"task": walkthrough.task}) + "\n", encoding="utf-8")
    settings = SynthSettings(
        tasks=tasks, library=folder / "library", scenarios=3, solver_runs=0, keep_unproved=True, attempts=1
    )
    async with open_models(ModelSettings(), offline=walkthrough.model()) as models:
        return await run_synth(settings, models, Prompts())


def test_words_that_the_plan_cut_off_are_completed_from_the_class(walkthrough: Walkthrough) -> None:
    assert set(walkthrough.completed) == {
        "active_sta -> active_status",
        "verification_sta -> verification_status",
        "_id -> user_id",
        "departmen -> department",
        "ncounter_id -> encounter_id",
    }


@pytest.mark.anyio
@pytest.mark.timeout(900)
async def test_the_recorded_replies_make_an_environment_that_passes_once_its_faulty_tool_is_given_up(
    walkthrough: Walkthrough, tmp_path: Path
) -> None:
    report = await synthesized(walkthrough, tmp_path)
    assert (report.funnel.stateful, report.funnel.programmed, report.funnel.accepted) == (1, 1, 1)
    store = LibraryStore.open(tmp_path / "library")
    (env_id,) = store.env_ids()
    skeleton, assessment = store.read_environment(env_id), store.read_assessment(env_id)
    assert assessment is not None

    recorded = walkthrough.imported
    assert {tool.name for tool in recorded.tools} - {tool.name for tool in skeleton.tools} == {FAULTY}
    assert [entity.container for entity in skeleton.entities] == [entity.container for entity in recorded.entities]
    assert assessment.accepted
    assert assessment.at_fault == ()
    assert {one.tool for one in assessment.repairs if one.accepted} == QUERIES
    (given_up,) = [one for one in assessment.repairs if one.dropped is not None]
    assert given_up.tool == FAULTY
    assert "failure_writes" in {finding.oracle for finding in given_up.found}
    assert all(not one.remarks for one in assessment.examined or () if one.tool in QUERIES)

    scenarios = list(store.scenarios(env_id))
    assert [len(scenario.checks) for scenario in scenarios] == [10, 9, 7]
    assert {scenario.solution for scenario in scenarios} == {None}


@pytest.mark.anyio
@pytest.mark.timeout(900)
async def test_our_assessment_of_it_as_it_is_finds_what_the_recorded_checker_found_and_more(
    walkthrough: Walkthrough,
) -> None:
    assessment = await assessed(walkthrough.imported, walkthrough)
    assert [one.tool for one in assessment.at_fault] == [FAULTY]
    assert [fault.oracle for fault in assessment.at_fault[0].faults] == ["failure_writes"]
    assert "/recorded_by" in assessment.at_fault[0].faults[0].detail
    remarks = {(one.tool, remark.oracle) for one in assessment.examined or () for remark in one.remarks}
    assert {tool for tool, oracle in remarks if oracle == "aliased_result"} == QUERIES

    recorded = {case["tool"] for case in walkthrough.cases if case["status"] == "fail"}
    assert recorded == {FAULTY}
    called = {(case["tool"], json.dumps(case["parameters"], sort_keys=True)) for case in walkthrough.cases}
    made = {(case.call.name, json.dumps(case.call.arguments, sort_keys=True)) for case in assessment.cases}
    assert made <= called
    assert len(assessment.cases) >= 15
    # What was never recorded is a round without a call, not a verdict.
    assert len(assessment.failures) == walkthrough.unanswered["test_call"] > 0


async def assessed(skeleton: EnvSkeleton, walkthrough: Walkthrough) -> Assessment:
    terms = Terms(rounds=len(walkthrough.cases) + 10, threshold=0.85, by="pass", all_rounds=True)
    async with open_models(ModelSettings(), offline=walkthrough.model()) as models, Sandbox() as sandbox:
        return await assess(skeleton, terms, seed=1, asking=Asking(models, Prompts(), 1), sandbox=sandbox)
