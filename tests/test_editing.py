"""Edits lead from one value to another, and where they cannot be made they say so."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.editing import EditError, edit
from envscaler.state import JsonValue, copied, diff, edits_of, encode, patched

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "b/c", "d~e", "0"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["", "a", "b/c", "~", "0"]), inner),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_the_difference_of_two_values_leads_from_one_to_the_other(one: JsonValue, other: JsonValue) -> None:
    before = copy.deepcopy(one)
    assert encode(patched(one, diff(one, other))) == encode(other)
    assert encode(one) == encode(before)
    assert encode(edit(copied(one), edits_of(diff(one, other)))) == encode(other)


@pytest.mark.parametrize(
    "change", [[["a", "b"], 1], [["missing"]], [["rows", "7"], 1], [["rows", "x"], 1], [["n", "deeper"], 1]]
)
def test_what_is_not_there_cannot_be_changed(change: list[JsonValue]) -> None:
    with pytest.raises(EditError, match="there is no"):
        edit({"rows": [1], "n": 5}, [change])


def test_an_index_behind_the_end_of_a_list_appends() -> None:
    assert edit({"rows": [1]}, [[["rows", 1], 2], [["rows", "2"], 3], [["rows", "0"]]]) == {"rows": [2, 3]}
