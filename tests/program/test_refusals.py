"""Tests of finding the refusals of a method and of taking one out."""

from __future__ import annotations

import ast

import pytest

from envscaler.program.refusals import refusals_of, rule_behind, without_refusal

METHOD = """
def lend(self, thing_id: str, member_id: str) -> dict:
    # who, and what
    if thing_id not in self.things:
        return {"success": False, "error": "There is no such thing."}
    if self.count > 3:
        self.count = 0
    if self.open:
        for other in self.things.values():
            if other['member_id'] == member_id and other['due'] < self.now:
                return {"success": False, "error": f"{member_id} has an overdue thing."}  # late
    if not member_id: raise ValueError("nobody")
    if thing_id == "a":
        return {"success": False, "error": "a"}
    elif thing_id == "b":
        return {"success": False, "error": "b"}
    return {"success": True, "message": "It was lent."}
"""


def test_refusals_are_conditions_that_end_the_call_with_a_failure() -> None:
    assert [one.condition for one in refusals_of(METHOD, "lend")] == [
        "thing_id not in self.things",
        "other['member_id'] == member_id and other['due'] < self.now",
        "not member_id",
    ]


@pytest.mark.parametrize("source", ["def lend(self:\n", "", "def other(self):\n    return 1\n"])
def test_code_without_the_method_has_none(source: str) -> None:
    assert refusals_of(source, "lend") == ()


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize("keep_condition", [True, False])
def test_the_method_without_a_refusal_keeps_all_else(index: int, keep_condition: bool) -> None:
    refusal = refusals_of(METHOD, "lend")[index]
    left = without_refusal(METHOD, refusal, keep_condition=keep_condition)
    assert left is not None
    ast.parse(left)
    assert "# who, and what" in left
    assert (f"if {refusal.condition}:" in left) == keep_condition
    others = [one.condition for one in refusals_of(METHOD, "lend") if one != refusal]
    assert [one.condition for one in refusals_of(left, "lend")] == others


def test_the_rule_behind_a_refusal_is_the_one_that_shares_most_words_with_it() -> None:
    rules = ["A thing is lent to one member at a time.", "A member with an overdue thing borrows nothing.", "Be kind."]
    found = refusals_of(METHOD, "lend")
    assert rule_behind(found[1], rules) == 1
    assert rule_behind(found[2], rules) is None
    assert rule_behind(found[0], []) is None
