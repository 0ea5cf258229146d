"""Tests of what a judge is shown of a state."""

from __future__ import annotations

import pytest

from envscaler.program import names_touched
from envscaler.state import State
from envscaler.synth.excerpt import excerpt

PROGRAM = """
class Desk:
    def __init__(self):
        self.books = {}
        self.loans = {}
        self.members = {}
        self.next_loan = 1

    def lend(self, book_id, member_id):
        if not self._is_there(book_id):
            return {"success": False, "error": "no such book"}
        self.loans[str(self.next_loan)] = {"book_id": book_id}
        return {"success": True}

    def _is_there(self, book_id):
        return book_id in self.books

    def count(self, what):
        return len(getattr(self, what))
"""
STATE: State = {
    "books": {"B1": {"book_id": "B1"}, "B2": {"book_id": "B2"}},
    "loans": {"L1": {"book_id": "B1", "member_id": "M1"}, "L2": {"book_id": "B2", "member_id": "M3"}},
    "members": {"M1": {"name": "Ann"}, "M2": {"name": "Bob"}, "M3": {"name": "Cleo"}},
    "next_loan": 3,
}


@pytest.mark.parametrize(
    ("method", "touched"),
    [
        ("lend", {"books", "loans", "next_loan"}),
        ("_is_there", {"books"}),
        ("count", None),
        ("inherited", None),
    ],
)
def test_a_method_touches_what_it_names_and_what_those_name_that_it_calls(
    method: str, touched: set[str] | None
) -> None:
    assert names_touched(PROGRAM, "Desk", method) == touched


def test_what_is_touched_is_shown_whole_and_of_the_rest_what_is_spoken_of() -> None:
    part = excerpt(STATE, {"loans", "books"}, [{"member_id": "M2"}, {"success": True}])
    assert part.state["books"] == STATE["books"]
    assert part.state["loans"] == STATE["loans"]
    assert part.state["members"] == {"M2": {"name": "Bob"}}
    assert part.state["next_loan"] == 3
    assert list(part.state) == list(STATE)
    assert part.left_out == {"members": 2}


def test_what_a_named_record_refers_to_is_shown() -> None:
    part = excerpt(STATE, {"loans"}, ["L2"])
    assert part.state["members"] == {"M3": {"name": "Cleo"}}
    assert part.state["books"] == {"B2": {"book_id": "B2"}}
    assert part.left_out == {"members": 2, "books": 1}


def test_where_it_cannot_be_told_everything_is_shown() -> None:
    assert excerpt(STATE, None, []).state is STATE
