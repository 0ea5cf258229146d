"""Tests of derived guards: what right ways change is free, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.sandbox.traceless import leaves_nothing
from envscaler.state import canonical
from envscaler.synth.guards import guards

BEFORE: dict[str, Any] = {
    "orders": {
        "O-1": {"order_id": "O-1", "status": "open", "amount": 5, "changed_at": "2025-01-01"},
        "O-2": {"order_id": "O-2", "status": "open", "amount": 7, "changed_at": "2025-01-02"},
    },
    "log": ["begun"],
    "limits": {"daily": 3},
    "next_number": 3,
}


def changed(*edits: tuple[str, Any]) -> dict[str, Any]:
    """The state with parts set by dotted path, or removed where the value is None."""
    state = canonical(BEFORE)
    for path, value in edits:
        *way, last = path.split(".")
        part = state
        for token in way:
            part = part[token]
        if value is None:
            del part[last]
        else:
            part[last] = value
    return state


PAID = changed(("orders.O-1.status", "paid"), ("orders.O-1.changed_at", "2025-01-06"), ("next_number", 4))
PAID_ALONE = changed(("orders.O-1.status", "paid"))
WITH_NEW = changed(("orders.O-3", {"order_id": "O-3", "status": "new", "amount": 1, "changed_at": "2025-01-06"}))


def is_stamp(path: Sequence[str]) -> bool:
    return path[-1] == "changed_at"


def holds(name: str, right: list[dict[str, Any]], final: dict[str, Any], before: dict[str, Any] | None = None) -> bool:
    (guard,) = guards(before or BEFORE, right, [name], exempt=is_stamp, language="en")
    assert guard.kind == "guard"
    assert leaves_nothing(guard.source)
    names: dict[str, Any] = {"initial_state": before or BEFORE}
    exec(guard.source, names)  # noqa: S102 - source of our own making
    said = names["check_func"](final)
    assert isinstance(said, bool)
    return said


@pytest.mark.parametrize(
    ("final", "said"),
    [
        (BEFORE, True),
        (PAID, True),
        (changed(("orders.O-1.status", "anything")), True),  # what it has to become is a goal's business
        (changed(("orders.O-2.changed_at", "2030-01-01")), True),
        (changed(("orders.O-1.amount", 6)), False),
        (changed(("orders.O-2.status", "paid")), False),
        (changed(("orders.O-2", None)), False),
        (changed(("orders.O-2.amount", None)), False),
        (changed(("orders.O-2", "gone")), False),
        (WITH_NEW, False),
        (changed(("orders", [])), False),
        (changed(("orders", None)), False),
    ],
)
def test_a_container_keeps_all_but_what_the_solution_changes(final: dict[str, Any], said: bool) -> None:
    assert holds("orders", [PAID], final) is said


def test_what_any_right_way_does_is_free() -> None:
    removed = changed(("orders.O-2", None))
    for final in (PAID, WITH_NEW, removed, BEFORE):
        assert holds("orders", [PAID, WITH_NEW, removed], final)
    two_more = canonical({**WITH_NEW, "orders": {**WITH_NEW["orders"], "O-4": WITH_NEW["orders"]["O-3"]}})
    assert not holds("orders", [WITH_NEW], two_more)


def test_no_guard_names_an_id_that_was_made_on_the_way() -> None:
    (guard,) = guards(BEFORE, [WITH_NEW], ["orders"], exempt=is_stamp, language="en")
    assert "O-3" not in guard.source


@pytest.mark.parametrize(
    ("name", "right", "final", "said"),
    [
        ("log", BEFORE, changed(("log", ["begun", "more"])), False),
        ("log", changed(("log", ["begun", "more"])), changed(("log", ["begun", "else"])), True),
        ("log", changed(("log", ["begun", "more"])), changed(("log", ["other", "more"])), False),
        ("log", changed(("log", [])), changed(("log", [])), True),
        ("log", BEFORE, changed(("log", "begun")), False),
        ("limits", BEFORE, changed(("limits.daily", 4)), False),
        ("limits", changed(("limits.daily", 4)), changed(("limits.daily", 5)), True),
        ("limits", BEFORE, changed(("limits.weekly", 5)), False),
        ("limits", BEFORE, changed(("limits", None)), False),
        ("next_number", BEFORE, changed(("next_number", 9)), False),
        ("next_number", BEFORE, changed(("next_number", True)), False),
    ],
)
def test_parts_that_hold_no_records_are_kept_as_well(
    name: str, right: dict[str, Any], final: dict[str, Any], said: bool
) -> None:
    assert holds(name, [right], final) is said
    assert holds(name, [right], right)
    assert holds(name, [right], BEFORE)


def test_a_single_value_that_right_ways_change_or_that_may_be_any_needs_no_guard() -> None:
    assert not guards(BEFORE, [PAID], ["next_number"], exempt=is_stamp, language="en")
    assert not guards(BEFORE, [BEFORE], ["next_number"], exempt=lambda path: True, language="en")


def test_sentences_are_in_the_language_of_the_scenario() -> None:
    said = {
        language: [
            guard.description
            for guard in guards(
                BEFORE, [PAID_ALONE], ["orders", "log", "next_number"], exempt=is_stamp, language=language
            )
        ]
        for language in ("en", "zh", "de")
    }
    assert said["en"] == [
        "Has nothing else of orders been changed, added or removed?",
        "Has nothing of log been changed, added or removed?",
        "Has next number stayed as it was?",
    ]
    assert said["zh"] == [
        "除此之外，orders是否没有任何更改、新增或删除？",
        "log是否没有任何更改、新增或删除？",
        "next number是否保持原样？",
    ]
    assert said["de"] == said["en"]


FIELDS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3)
CONTAINER = st.dictionaries(st.sampled_from(["R-1", "R-2", "R-3"]), FIELDS, max_size=3)


@given(CONTAINER, st.lists(CONTAINER, min_size=1, max_size=3))
def test_a_guard_holds_at_reset_and_after_every_right_way(before: dict[str, Any], right: list[dict[str, Any]]) -> None:
    states = [{"records": records} for records in right]
    for state in ({"records": before}, *states):
        assert holds("records", states, state, {"records": before})


@given(CONTAINER, CONTAINER, CONTAINER)
def test_a_guard_notices_every_field_that_the_right_way_left_alone(
    before: dict[str, Any], right: dict[str, Any], final: dict[str, Any]
) -> None:
    meddled = any(
        key in right and (key not in final or final[key].get(name) != value)
        for key, record in before.items()
        for name, value in record.items()
        if key in right and right[key].get(name) == value
    )
    if meddled:
        assert not holds("records", [{"records": right}], {"records": final}, {"records": before})
