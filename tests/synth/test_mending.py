"""Tests of what becomes of weak checks: guards are added, functions are written again, and nothing ever gets worse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from synth.lending import LendingModel, Variant, check_code

from envscaler.evidence import CheckFault, Probe, Proof, Thresholds
from envscaler.models import Models, ModelSettings, open_models
from envscaler.offline.domains import domains
from envscaler.proof import Examined, is_stale
from envscaler.proof.playing import Played
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.sandbox import Sandbox
from envscaler.scenario import Check, Scenario
from envscaler.skeleton import EnvDescription, EnvSkeleton, Origin
from envscaler.synth.asking import Asking
from envscaler.synth.complaints import blamed, complaints
from envscaler.synth.design import design
from envscaler.synth.finishing import Proved
from envscaler.synth.programming import program
from envscaler.synth.scenarios import ScenarioWriter
from envscaler.synth.settings import CHECKS_PER_CALL

Opened = Callable[[LendingModel], Models]
CheckWriter = Callable[[t.WriteCheckInputs, Any], Any]

ONE_FIELD = 'return final_state["things"]["T-2"]["status"] == "lent"'


async def written(
    skeleton: EnvSkeleton, opened: Opened, check: CheckWriter, thresholds: Thresholds | None = None
) -> tuple[Proved, list[t.WriteCheckInputs]]:
    """The scenario, and with which complaints checks were asked for again."""
    complaints: list[t.WriteCheckInputs] = []

    def noted(inputs: t.WriteCheckInputs, usual: Any) -> Any:
        complaints.extend([inputs] if inputs.fault is not None else [])
        return check(inputs, usual)

    async with opened(Variant(write_check=noted)) as models, Sandbox() as sandbox:
        writer = ScenarioWriter(
            skeleton,
            seed=4,
            asking=Asking(models, Prompts(), 3),
            sandbox=sandbox,
            origin=Origin(seed=4),
            thresholds=thresholds,
        )
        (outcome,) = await writer.write(range(1))
        assert isinstance(outcome, Proved), outcome
        return outcome, complaints


@pytest.mark.anyio
async def test_guards_are_added_where_edits_too_many_go_unnoticed(skeleton: EnvSkeleton, opened: Opened) -> None:
    proved, complaints = await written(skeleton, opened, lambda inputs, usual: usual)
    assert proved.accepted
    assert not complaints
    assert proved.proof.over_edits_caught == 1.0
    assert not is_stale(proved.proof, skeleton, proved.scenario)
    assert [check.description for check in proved.scenario.checks] == [
        "Has T-2 been lent to M-1?",
        "Has T-1 stayed with M-2?",
        "Has nothing else of things been changed, added or removed?",
        "Has nothing of members been changed, added or removed?",
    ]


@pytest.mark.anyio
async def test_a_check_that_accepts_a_wrong_state_is_written_again(skeleton: EnvSkeleton, opened: Opened) -> None:
    def check(inputs: t.WriteCheckInputs, usual: Any) -> Any:
        return check_code(ONE_FIELD) if inputs.position == 0 and inputs.fault is None else usual

    proved, (complaint,) = await written(skeleton, opened, check)
    assert proved.accepted
    assert proved.proof.mutation_score == 1.0
    assert complaint.item == "Has T-2 been lent to M-1?"
    assert complaint.previous is not None
    assert complaint.previous.strip().endswith(ONE_FIELD)
    assert complaint.fault is not None
    assert complaint.fault.startswith("it accepted a final state that is wrong")
    # The writer learns what was accepted, not how the task is carried out or what would be right.
    assert not any(word in complaint.fault for word in ("lend_thing", "M-1", "find_member"))


@pytest.mark.anyio
async def test_a_check_that_passes_for_a_guard_and_notices_nothing_is_written_again(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    def checklist(inputs: t.WriteChecklistInputs, usual: Any) -> Any:
        return {"checklist": ["Has T-2 become lent?", "Has the member_id of T-2 become M-1?"]}

    def again(inputs: t.WriteCheckInputs, usual: Any) -> Any:
        # One check sees half of the change; the one that should see the other half is true from the beginning.
        if inputs.position == 0:
            return check_code(ONE_FIELD)
        if inputs.fault is None:
            return check_code('return "T-2" in final_state["things"]')
        assert "It is True of the state at the beginning as well" in inputs.fault
        return check_code('return final_state["things"].get("T-2", {}).get("member_id") == "M-1"')

    async with opened(Variant(write_check=again, write_checklist=checklist)) as models, Sandbox() as sandbox:
        asking = Asking(models, Prompts(), 3)
        writer = ScenarioWriter(skeleton, seed=4, asking=asking, sandbox=sandbox, origin=Origin(seed=4))
        (proved,) = await writer.write(range(1))
    assert isinstance(proved, Proved)
    assert proved.accepted, proved.reason
    assert [one.kind for one in proved.scenario.checks[:2]] == ["goal", "goal"]


@pytest.mark.anyio
async def test_a_check_that_refuses_the_solution_is_written_again(skeleton: EnvSkeleton, opened: Opened) -> None:
    def check(inputs: t.WriteCheckInputs, usual: Any) -> Any:
        strict = check_code('return final_state["things"]["T-2"]["label"] == "lent"')
        return strict if inputs.position == 0 and inputs.fault is None else usual

    proved, (complaint,) = await written(skeleton, opened, check)
    assert proved.accepted
    assert proved.scenario.solution is not None
    assert complaint.fault is not None
    assert "the task was carried out as its writer meant it" in complaint.fault


@pytest.mark.anyio
async def test_what_is_written_again_is_kept_only_if_it_is_better(skeleton: EnvSkeleton, opened: Opened) -> None:
    worse = iter(
        (
            'return final_state["things"]["T-2"]["label"] == "x"',
            'return final_state["things"]["T-2"]["member_id"] is not None',
            'return final_state["things"]["T-2"]["status"] != "free"',
        )
    )

    def check(inputs: t.WriteCheckInputs, usual: Any) -> Any:
        if inputs.position:
            return usual
        return check_code(ONE_FIELD if inputs.fault is None else next(worse))

    proved, complaints = await written(skeleton, opened, check)
    assert len(complaints) == 3  # as many as attempts
    assert ONE_FIELD in proved.scenario.checks[0].source
    assert proved.proof.survivors


@pytest.mark.anyio
async def test_a_writer_that_says_the_same_again_is_not_asked_for_ever(skeleton: EnvSkeleton, opened: Opened) -> None:
    def check(inputs: t.WriteCheckInputs, usual: Any) -> Any:
        return usual if inputs.position else check_code(ONE_FIELD)

    proved, complaints = await written(skeleton, opened, check, Thresholds(mutation_score=0.99))
    assert len(complaints) == 1
    assert not proved.accepted
    assert "of the wrong final states are noticed, 99% are asked for" in proved.reason
    lower, _ = await written(skeleton, opened, check, Thresholds(mutation_score=0.2))
    assert lower.accepted


@pytest.mark.anyio
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_scenarios_of_the_offline_model_need_no_mending(language: str) -> None:
    blueprint = domains(language)[3]  # type: ignore[arg-type]
    description = EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction)
    async with open_models(ModelSettings()) as models, Sandbox() as sandbox:
        asking = Asking(models, Prompts(), 1)
        made = await design(description, (), language, asking)
        programmed = await program(made, seed=1, asking=asking, sandbox=sandbox)
        skeleton = EnvSkeleton(
            id="offline",
            description=description,
            entities=made.entities,
            rules=programmed.rules,
            tools=programmed.tools,
            class_name=programmed.class_name,
            source=programmed.source,
            origin=Origin(language=language),
        )
        writer = ScenarioWriter(skeleton, seed=2, asking=asking, sandbox=sandbox, origin=Origin())
        outcomes = await writer.write(range(4))
    for proved in outcomes:
        assert isinstance(proved, Proved)
        assert proved.accepted, proved.reason
        assert proved.proof.over_edits_caught == 1.0
        # Task, checklist, and as few questions as can be for the checks: none was asked for again, none was added.
        asked = math.ceil(len(proved.scenario.checks) / CHECKS_PER_CALL)
        assert proved.scenario.origin.use["scenarios"].calls == 2 + asked
        assert proved.scenario.difficulty is not None
        assert proved.scenario.difficulty.forbidden is not None


def checks_of(*sentences: str) -> tuple[Check, ...]:
    return tuple(Check(description=sentence, source="") for sentence in sentences)


@pytest.mark.parametrize(
    ("sentences", "keys", "told", "index"),
    [
        (("Has T-2 been lent?", "Has T-2 been paid for?"), ["things", "T-2"], ["status", "lent"], 0),
        (("Has T-2 been paid for?", "Has T-2 been lent?"), ["things", "T-2"], ["status", "lent"], 1),
        (("Has anything been lent?", "Has T-2 been lent?"), ["things", "T-2"], ["status", "lent"], 1),
        (("Have things happened to T-2?",), ["things", "T-2"], ["status", "lent"], None),
        (("Has it become unlent?",), ["things", "T-2"], ["lent"], None),
        ((), ["things"], ["lent"], None),
    ],
)
def test_the_check_that_names_most_of_a_place_is_to_blame(
    sentences: tuple[str, ...], keys: list[str], told: list[str], index: int | None
) -> None:
    assert blamed(checks_of(*sentences), range(len(sentences)), keys, told) == index


def test_what_a_check_does_that_none_may_is_told_without_the_calls_that_were_made() -> None:
    proof = Proof(
        env_id="desk",
        scenario_id="desk-s001",
        env_digest="",
        scenario_digest="",
        solution_digest="",
        method=1,
        kinds=("goal", "goal", "guard"),
        probes=(
            Probe(kind="noop", what="nothing was done", failed=(0,)),
            Probe(kind="solution", what="the solution was played", failed=(0,)),
            Probe(kind="variant", what="lend_thing before find_things", failed=(0, 2)),
        ),
        faults=(CheckFault(check=0, kind="raises", detail="when lend_thing before find_things: KeyError: 'x'"),),
    )
    scenario = Scenario(
        id="desk-s001", env_id="desk", env_digest="", initial_state={}, task="", checks=checks_of("a", "b", "c")
    )
    found = complaints(scenario, Examined(proof, Played({}, {}, "", (), (), (), ())), ())
    assert list(found) == [0, 1, 2]
    assert "it raised KeyError: 'x'" in found[0]
    assert "as its writer meant it" in found[0]
    assert "True of the state at the beginning" in found[1]
    assert "carried out as well, in another order" in found[2]
    assert not any("lend_thing" in text for text in found.values())
