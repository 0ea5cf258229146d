"""What a proof finds in checks that are good, and in the same made worse in one way each."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from proof.desk import HAS_LIMIT, HAS_LOAN, IS_LENT, REST, SOURCE, scenario, skeleton

from envscaler.evidence import Proof, Thresholds
from envscaler.proof import is_stale, prove
from envscaler.sandbox import Judge, Sandbox
from envscaler.scenario import Check, Scenario, SolutionCall

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as opened:
        yield opened


@pytest.fixture
async def judge(sandbox: Sandbox) -> AsyncIterator[Judge]:
    async with sandbox.judge() as opened:
        yield opened


async def proved(subject: Scenario, sandbox: Sandbox, judge: Judge) -> Proof:
    return await prove(skeleton(), subject, sandbox, judge)


async def test_good_checks_notice_every_wrong_state_and_refuse_no_right_way(sandbox: Sandbox, judge: Judge) -> None:
    proof = await proved(scenario(), sandbox, judge)
    assert proof.solved
    assert proof.kinds == ("goal", "goal", "goal", "guard")
    assert [probe.what for probe in proof.survivors] == []
    assert proof.over_edits_caught == 1.0
    assert proof.variants_passed == 1.0
    assert len(proof.of("variant", "alternative")) >= 5
    assert {probe.kind for probe in proof.mutants} >= {
        "undone",
        "altered",
        "near_miss",
        "swapped",
        "left_out",
        "misdirected",
    }
    assert (proof.faults, proof.hidden, proof.leaks, proof.unproved, proof.true_at_reset) == ((), (), (), (), ())
    assert Thresholds().shortfalls(proof) == ()


async def test_ids_stamps_and_counters_are_asked_for_by_no_probe(sandbox: Sandbox, judge: Judge) -> None:
    proof = await proved(scenario(), sandbox, judge)
    assert not [probe.what for probe in proof.mutants if "lent_at" in probe.what or "loans_made" in probe.what]


@pytest.mark.parametrize(
    ("left", "noticed_by_nobody"),
    [
        ((HAS_LOAN, HAS_LIMIT, REST), "/things/T1/status"),
        ((IS_LENT, HAS_LOAN, REST), "/members/M2/limit"),
        ((IS_LENT, HAS_LIMIT, REST), "/loans/"),
    ],
)
async def test_a_goal_that_no_check_asks_for_leaves_survivors(
    left: tuple[Check, ...], noticed_by_nobody: str, sandbox: Sandbox, judge: Judge
) -> None:
    proof = await proved(scenario(*left), sandbox, judge)
    assert proof.solved
    assert any(probe.kind == "undone" and noticed_by_nobody in probe.what for probe in proof.survivors)
    assert proof.mutation_score is not None
    assert proof.mutation_score < 1


async def test_without_guards_no_edit_too_many_is_caught(sandbox: Sandbox, judge: Judge) -> None:
    proof = await proved(scenario(IS_LENT, HAS_LOAN, HAS_LIMIT), sandbox, judge)
    assert proof.over_edits_caught == 0.0
    assert any("0% of the edits" in shortfall for shortfall in Thresholds().shortfalls(proof))


async def test_a_check_for_part_of_a_text_takes_near_misses(sandbox: Sandbox, judge: Judge) -> None:
    loose = IS_LENT.model_copy(update={"source": IS_LENT.source.replace("== 'lent'", ".endswith('lent')")})
    proof = await proved(scenario(loose, HAS_LOAN, HAS_LIMIT, REST), sandbox, judge)
    assert [probe.kind for probe in proof.survivors] == ["near_miss"] * len(proof.survivors)
    assert any("'unlent'" in probe.what for probe in proof.survivors)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return final_state['missing'] == 1", "raises"),
        ("return len(final_state['loans'])", "not_bool"),
        ("final_state['loans'].clear()\n    return True", "mutates"),
        ("import random\n    return random.random() < 0.5", "nondeterministic"),
    ],
)
async def test_what_no_check_may_do_is_a_fault(body: str, kind: str, sandbox: Sandbox, judge: Judge) -> None:
    bad = Check(description="Is it bad?", source=f"def check_func(final_state):\n    {body}\n", kind="goal")
    proof = await proved(scenario(IS_LENT, HAS_LOAN, HAS_LIMIT, REST, bad), sandbox, judge)
    assert (4, kind) in [(fault.check, fault.kind) for fault in proof.faults]
    assert Thresholds().shortfalls(proof)


async def test_a_check_that_wants_an_order_refuses_an_equally_right_way(sandbox: Sandbox, judge: Judge) -> None:
    stamped = Check(
        description="Was it lent within ten seconds?",
        source=(
            "def check_func(final_state):\n"
            "    return [loan['lent_at'][:16] for loan in final_state['loans'].values()] == ['2025-01-06T09:00']\n"
        ),
        kind="goal",
    )
    proof = await proved(scenario(IS_LENT, HAS_LOAN, HAS_LIMIT, REST, stamped), sandbox, judge)
    assert proof.solved
    assert "an hour later" in [probe.what for probe in proof.of("variant") if 4 in probe.failed]


async def test_a_value_that_stands_nowhere_is_hidden_and_one_that_a_call_tells_is_not(
    sandbox: Sandbox, judge: Judge
) -> None:
    subject = scenario(task="Lend the Red kayak to Bo and raise his limit.")
    look, _, lend = subject.solution or ()
    raised = SolutionCall(name="set_limit", arguments={"member_id": "M2", "limit": 37})
    asked = HAS_LIMIT.model_copy(update={"source": HAS_LIMIT.source.replace("== 3", "== 37")})
    hidden = subject.model_copy(update={"solution": (look, raised, lend), "checks": (IS_LENT, HAS_LOAN, asked, REST)})
    assert any("37" in sentence for sentence in (await proved(hidden, sandbox, judge)).hidden)
    assert (await proved(subject, sandbox, judge)).hidden == ()


async def test_a_task_that_names_tools_and_ids_leaks(sandbox: Sandbox, judge: Judge) -> None:
    leaking = scenario(task="Use set_limit for M2 and find_thing for the Red kayak, T1.")
    leaks = (await proved(leaking, sandbox, judge)).leaks
    assert any("set_limit" in leak for leak in leaks)
    assert any("find_thing" in leak for leak in leaks)


async def test_without_a_solution_that_runs_nothing_is_proved_and_it_is_said_why(
    sandbox: Sandbox, judge: Judge
) -> None:
    nothing = await proved(scenario(solution=None), sandbox, judge)
    broken = await proved(
        scenario(solution=(SolutionCall(name="lend", arguments={"thing_id": "T3", "member_id": "M2"}),)), sandbox, judge
    )
    assert nothing.unproved == ("it has no solution",)
    assert "it is lent" in broken.unproved[0]
    assert not nothing.solved
    assert not broken.solved
    unbuilt = await prove(skeleton(SOURCE.replace("self.members =", "self.members = 1 /")), scenario(), sandbox, judge)
    assert "cannot be built" in unbuilt.unproved[0]


async def test_a_proof_is_stale_once_what_it_was_made_for_has_changed(sandbox: Sandbox, judge: Judge) -> None:
    subject = scenario()
    proof = await proved(subject, sandbox, judge)
    assert not is_stale(proof, skeleton(), subject)
    assert is_stale(proof, skeleton(SOURCE + "\n# edited\n"), subject)
    assert is_stale(proof, skeleton(), subject.model_copy(update={"task": "Something else"}))
    assert is_stale(proof, skeleton(), subject.model_copy(update={"solution": (subject.solution or ())[1:]}))


async def test_the_same_scenario_is_proved_the_same_twice(sandbox: Sandbox, judge: Judge) -> None:
    assert await proved(scenario(), sandbox, judge) == await proved(scenario(), sandbox, judge)
