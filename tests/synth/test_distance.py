"""Tests of how far two states are apart."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envscaler.synth.distance import Shape, distance

STATES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)
STATE = st.dictionaries(st.text(max_size=2), STATES, max_size=4)


@given(STATE, STATE)
def test_distance_is_a_share_symmetric_and_zero_for_equal_states(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert 0.0 <= distance(left, right) <= 1.0
    assert distance(left, right) == distance(right, left)
    assert distance(left, left) == 0.0


@given(STATE, STATE)
def test_states_that_are_far_apart_by_their_values_alone_are_so_by_their_records(
    left: dict[str, Any], right: dict[str, Any]
) -> None:
    ours, theirs = Shape(left), Shape(right)
    apart = ours.distance(theirs)
    assert ours.may_be_nearer(theirs, apart + 1e-9) or not (left or right)


def orders(*rows: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "orders": {key: {"order_id": key, "customer_id": customer, "status": status} for key, customer, status in rows},
        "customers": {"C-1": {"customer_id": "C-1", "name": "Ana"}, "C-2": {"customer_id": "C-2", "name": "Bo"}},
    }


def test_the_same_records_under_other_ids_are_no_other_state() -> None:
    one = orders(("O-1", "C-1", "open"), ("O-2", "C-2", "paid"))
    other = orders(("O-8", "C-2", "paid"), ("O-9", "C-1", "open"))
    assert distance(one, other) == 0.0


def test_a_reference_counts_as_what_it_refers_to() -> None:
    one = orders(("O-1", "C-1", "open"))
    other = orders(("O-1", "C-2", "open"))
    assert 0.0 < distance(one, other) < 0.6


def test_values_that_are_dealt_to_other_records_make_another_state() -> None:
    one = orders(("O-1", "C-1", "open"), ("O-2", "C-2", "paid"))
    other = orders(("O-1", "C-1", "paid"), ("O-2", "C-2", "open"))
    assert distance(one, other) > 0.0
    # All values thrown together are the same: the quick look cannot tell, and does not say that it can.
    assert Shape(one).may_be_nearer(Shape(other), 0.01)


def test_each_record_has_one_counterpart() -> None:
    one = orders(("O-1", "C-1", "open"))
    twice = orders(("O-1", "C-1", "open"), ("O-2", "C-1", "open"))
    assert distance(one, twice) > 0.0
