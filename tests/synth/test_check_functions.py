"""Several check functions a call: what a reply brings stays, the rest is asked for again, in the end one at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synth.lending import LendingModel

from envscaler.models import Models
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.sandbox import Sandbox
from envscaler.scenario import Check
from envscaler.skeleton import EnvDescription
from envscaler.synth.asking import Asking
from envscaler.synth.check_functions import CheckFunctions, _parts

Opened = Callable[[LendingModel], Models]

pytestmark = pytest.mark.anyio

STATE = {"things": {"T-1": {"status": "free"}}, "members": {}, "next_number": 5}
LENT = {**STATE, "things": {"T-1": {"status": "lent"}}}
HELPER = "def status(state, key):\n    return state['things'].get(key, {}).get('status')\n"
GOAL = "return status(final_state, 'T-1') == 'lent'"
ALONE = "```python\ndef check_func(final_state):\n    return final_state['things']['T-1']['status'] == 'lent'\n```"


class Writer(LendingModel):
    """Gives replies in turn, to several questions and to one; keeps what it was asked."""

    def __init__(self, *several: str, one: str = ALONE) -> None:
        super().__init__()
        self.several = list(several)
        self.one = one
        self.batches: list[tuple[t.CheckQuestion, ...]] = []
        self.single: list[t.WriteCheckInputs] = []

    def write_checks(self, inputs: t.WriteChecksInputs) -> Any:
        self.batches.append(inputs.questions)
        return self.several.pop(0)

    def write_check(self, inputs: t.WriteCheckInputs) -> Any:
        self.single.append(inputs)
        return self.one


def reply(*functions: str, helper: str = HELPER) -> str:
    return "Here they are.\n```python\n" + "\n\n".join([helper, *functions]) + "\n```\nThat is all."


def function(number: int, body: str = GOAL) -> str:
    return f"def check_{number}(final_state):\n    {body}"


async def checks(
    writer: Writer, opened: Opened, count: int, *, per_call: int = 8, attempts: int = 3, **question: Any
) -> list[Check | str]:
    questions = [t.CheckQuestion(item=f"Has {n}?", position=n - 1, **question) for n in range(1, count + 1)]
    inputs = t.WriteChecklistInputs(
        description=EnvDescription(summary="Desk", introduction="It lends."),
        entities=(),
        rules=(),
        tools=(),
        state=STATE,
        clock="2025-01-06T09:00:00",
        task="Lend T-1.",
        index=0,
        seed=1,
    )
    async with opened(writer) as models, Sandbox() as sandbox, sandbox.judge() as judge:
        asking = Asking(models, Prompts(), attempts)
        functions = CheckFunctions(inputs, other_state=LENT, per_call=per_call, asking=asking, judge=judge)
        return await functions.write(questions, sample=0)


async def test_one_call_writes_all_and_each_check_stands_alone(opened: Opened) -> None:
    guard = "import re\n    return bool(re.match('f|l', status(final_state, 'T-1')))"
    writer = Writer(reply(function(1), function(2, guard), function(3)))
    made = await checks(writer, opened, 3)
    assert [(one.description, one.kind) for one in made if isinstance(one, Check)] == [
        ("Has 1?", "goal"),
        ("Has 2?", "guard"),
        ("Has 3?", "goal"),
    ]
    for one in made:
        assert isinstance(one, Check)
        assert one.source.startswith("def check_func(final_state):\n    def status(state, key):\n")
        assert not re.search(r"check_\d", one.source)
    assert (len(writer.batches), writer.single) == (1, [])


async def test_a_long_checklist_is_parted_evenly(opened: Opened) -> None:
    writer = Writer(*(reply(*(function(n) for n in range(1, 10))) for _ in range(3)))
    made = await checks(writer, opened, 9, per_call=4)
    assert all(isinstance(one, Check) for one in made)
    assert sorted(len(batch) for batch in writer.batches) == [3, 3, 3]


@given(st.integers(0, 60), st.integers(1, 20))
def test_parts_are_few_and_about_equal_and_lose_nothing(count: int, most: int) -> None:
    questions = [t.CheckQuestion(item=str(n), position=n) for n in range(count)]
    parts = _parts(questions, most)
    assert [one for part in parts for one in part] == questions
    assert all(0 < len(part) <= most for part in parts)
    assert len(parts) == -(-count // most)
    assert max(map(len, parts), default=0) - min(map(len, parts), default=0) <= 1


async def test_only_what_cannot_be_used_is_asked_for_again_with_its_fault(opened: Opened) -> None:
    first = reply(function(1), function(2), function(3), function(4, "return final_state['bikes']"))
    writer = Writer(first, reply(function(4), function(5)))
    made = await checks(writer, opened, 5)
    assert all(isinstance(one, Check) for one in made)
    assert not writer.single
    broken, missing = writer.batches[1]
    assert (broken.item, missing.item) == ("Has 4?", "Has 5?")
    assert broken.fault is not None
    assert "KeyError" in broken.fault
    assert broken.previous is not None
    assert "final_state['bikes']" in broken.previous
    assert (missing.fault, missing.previous) == ("there is no function check_5", None)


async def test_code_that_does_not_parse_costs_its_own_function_only(opened: Opened) -> None:
    writer = Writer(reply(function(1), function(2, "return (status("), function(3)))
    made = await checks(writer, opened, 3)
    assert all(isinstance(one, Check) for one in made)
    (asked,) = writer.single
    assert (asked.item, asked.fault) == ("Has 2?", None)


@pytest.mark.parametrize(
    "bad",
    [
        "I cannot do that.",
        "",
        reply(function(1)),
        reply(function(1), function(2, "return 1"), function(3, "return None"), function(4, "return x")),
        "```python\ndef check_func(final_state):\n    return True\n```",
    ],
)
async def test_a_model_that_is_not_up_to_several_is_asked_one_at_a_time(bad: str, opened: Opened) -> None:
    writer = Writer(bad)
    made = await checks(writer, opened, 4)
    assert all(isinstance(one, Check) for one in made)
    assert len(writer.batches) == 1
    asked = [one.item for one in writer.single]
    assert asked == [f"Has {n}?" for n in range(1, 5)][-len(asked) :]
    # What was there and could not be used is shown with its fault; what was not there is asked for as at first.
    assert all((one.fault is None) == (one.previous is None) for one in writer.single)


async def test_what_no_reply_brings_is_dropped_with_the_last_reason(opened: Opened) -> None:
    bad = "return final_state['bikes']"
    writer = Writer(reply(function(1), function(2, bad)), one=ALONE.replace("'things'", "'bikes'"))
    good, reason = await checks(writer, opened, 2)
    assert isinstance(good, Check)
    assert isinstance(reason, str)
    assert reason.startswith("check 'Has 2?': write_check: run on the initial state, it gave no boolean")
    assert len(writer.single) == 2  # the third time in all


async def test_a_function_that_stays_wrong_in_every_batch_is_given_up(opened: Opened) -> None:
    bad = reply(function(1, "return 1"), function(2, "return 2"), function(3), function(4))
    writer = Writer(bad, bad)
    made = await checks(writer, opened, 4, attempts=1)
    assert [isinstance(one, Check) for one in made] == [False, False, True, True]
    assert "(after 1 attempts)" in str(made[0])
    assert not writer.single


async def test_a_complaint_is_not_forgotten_over_a_new_fault(opened: Opened) -> None:
    first = reply(function(1), function(2), function(3, "return 1"), function(4, "return 1"))
    writer = Writer(first, reply(function(3), function(4)))
    await checks(writer, opened, 4, fault="it accepted a wrong state", previous="def check_func(s): ...")
    (again, _) = writer.batches[1]
    assert again.fault is not None
    assert again.fault.endswith("and of the one before: it accepted a wrong state")


async def test_one_a_call_is_as_it_was(opened: Opened) -> None:
    writer = Writer()
    made = await checks(writer, opened, 3, per_call=1)
    assert all(isinstance(one, Check) for one in made)
    assert (writer.batches, len(writer.single)) == ([], 3)
