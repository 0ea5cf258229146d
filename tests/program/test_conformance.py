"""A state against the entities of its environment."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from envscaler.program import state_faults
from envscaler.skeleton import Attribute, Entity

ENTITIES = (
    Entity(
        name="Member",
        container="members",
        key="member_id",
        attributes=(
            Attribute(name="member_id", type="str"),
            Attribute(name="tier", type="str", enum=("basic", "gold")),
            Attribute(name="loans", type="list[str]", references="Loan"),
        ),
    ),
    Entity(
        name="Loan",
        container="loans",
        key="loan_id",
        attributes=(
            Attribute(name="loan_id", type="str"),
            Attribute(name="member_id", type="str | None", references="Member"),
            Attribute(name="days", type="int"),
        ),
    ),
    Entity(name="Desk", attributes=(Attribute(name="clock", type="str"), Attribute(name="counter", type="int"))),
)
STATE: dict[str, Any] = {
    "members": {"M1": {"member_id": "M1", "tier": "gold", "loans": ["L1"]}},
    "loans": {
        "L1": {"loan_id": "L1", "member_id": "M1", "days": 3},
        "L2": {"loan_id": "L2", "member_id": None, "days": 3},
    },
    "clock": "2025-01-06T09:00:00",
    "counter": 3,
}


def test_a_state_that_fits_has_no_fault() -> None:
    assert state_faults(STATE, ENTITIES) == ()


def test_without_entities_nothing_is_known() -> None:
    assert state_faults({"anything": 1}, ()) == ()


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("members", None, "/members: missing from the state"),
        ("members", [], "/members: is an array; it must be an object"),
        ("members/M1", "x", '/members/M1: is the string "x"; it must be a Member record'),
        ("members/M1/tier", None, "/members/M1: lacks the attribute `tier`"),
        ("members/M1/tier", "silver", '/members/M1/tier: is the string "silver"; it must be one of basic, gold'),
        ("members/M1/member_id", "M2", "it must repeat the id 'M1'"),
        ("members/M1/loans", ["L1", "L9"], "/members/M1/loans: refers to Loan 'L9', which does not exist"),
        ("members/M1/loans", "L1", "/members/M1/loans: it must be an array"),
        ("members/M1/extra", 1, "/members/M1/extra: Member has no attribute `extra`"),
        ("loans/L1/member_id", "M7", "refers to Member 'M7'"),
        ("loans/L1/days", "3", "/loans/L1/days: it must be an integer"),
        ("clock", None, "/clock: missing from the state"),
        ("counter", 1.5, "/counter: it must be an integer"),
        ("surprise", {}, "/surprise: no entity has such a container or attribute"),
    ],
)
def test_each_fault_is_a_pointer_and_a_sentence(path: str, value: Any, sentence: str) -> None:
    state = copy.deepcopy(STATE)
    *way, last = path.split("/")
    place = state
    for step in way:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    found = state_faults(state, ENTITIES)
    assert any(sentence in fault for fault in found), found
