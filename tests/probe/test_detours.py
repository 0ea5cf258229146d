from __future__ import annotations

import random

import pytest
from env.lending import STATE, skeleton

from envscaler.probe import between, mistaken, planned, random_look_ups, told_look_ups, wrong_arguments
from envscaler.program import argument_faults
from envscaler.scenario import SolutionCall

DESK = skeleton()
TOOLS, ENTITIES = DESK.tools, DESK.entities
LEND = DESK.tool("lend_book")
assert LEND is not None


def test_look_ups_take_what_the_task_says_and_no_more() -> None:
    found = [
        (look.call.name, look.call.arguments, told) for look, told in told_look_ups(TOOLS, STATE, ENTITIES, "Emma!")
    ]
    assert found == [("find_books", {"title": "Emma"}, True), ("find_books", {}, False)]
    assert [told for _, told in told_look_ups(TOOLS, STATE, ENTITIES, "Something else")] == [False]


def test_a_query_that_needs_an_id_is_none_that_one_could_begin_with() -> None:
    by_id = LEND.model_copy(update={"effect": "query"})
    assert told_look_ups([by_id], STATE, ENTITIES, "Emma for Ann") == []
    assert told_look_ups([by_id], STATE, ENTITIES, "B1, please") == []


def test_only_queries_are_looked_up_with() -> None:
    looks = random_look_ups(TOOLS, STATE, ENTITIES, random.Random(1), 3)
    assert [look.call.name for look in looks] == ["find_books"]
    assert all(look.number is None for look in looks)


def test_look_ups_stand_before_each_call() -> None:
    plan = planned([SolutionCall(name=name) for name in ("a", "b", "c")])
    looks = planned([SolutionCall(name=name) for name in ("x", "y")])
    assert [step.call.name for step in between(plan, looks)] == ["x", "a", "y", "b", "x", "c"]
    assert [step.number for step in plan] == [0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_one_of_the_given_arguments_is_wrong_and_the_rest_stays(seed: int) -> None:
    right = {"book_id": "B1", "member": "Ann"}
    wrong = mistaken(LEND, right, STATE, ENTITIES, random.Random(seed), ("missing", "unknown_id"))
    assert wrong is not None
    assert sum(wrong.get(name) != value for name, value in right.items()) == 1
    assert set(wrong) <= set(right)
    assert len(wrong) < 2 or wrong["book_id"] != "B1" or argument_faults(LEND.parameters, wrong)
    kind, _ = wrong_arguments(LEND, STATE, ENTITIES, random.Random(seed), arguments=right, kinds=("null",))
    assert kind == "null"


def test_where_a_tool_can_have_no_such_fault_there_is_no_mistake() -> None:
    find = DESK.tool("find_books")
    assert find is not None
    assert mistaken(find, {"title": "Emma"}, STATE, ENTITIES, random.Random(1), ("missing", "unknown_id")) is None
