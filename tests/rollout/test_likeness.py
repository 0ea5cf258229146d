from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.rollout.likeness import (
    Ids,
    alike,
    differences,
    is_clock_id,
    moment_of,
    recorded_value,
    same_exception,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
A, B = "3016f873-303a-4497-bbe1-a7b68933c590", "53b4f408-c4f2-46eb-b0ac-ffbdc418d99e"


@given(JSON)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert list(differences(value, value)) == []


@given(JSON)
def test_the_text_of_a_result_is_read_back(value: Any) -> None:
    if not isinstance(value, str):
        assert recorded_value(str(value), value) == value


@pytest.mark.parametrize("text", ["{{1}}", "{[1]: 2}", "[", "\x00"])
def test_a_text_that_is_no_value_is_itself(text: str) -> None:
    assert recorded_value(text, {}) == text


@given(st.uuids(), st.uuids(), JSON)
def test_mapping_there_and_back_gives_the_value_again(one: Any, other: Any, value: Any) -> None:
    ids = Ids()
    assert ids.learn(str(one), str(other))
    whole = {"of": [value, str(one), f"ticket {one} was opened", f"/tickets/{one}.json"]}
    assert ids.as_recorded(ids.as_ours(whole)) == whole


def test_ids_are_learned_inside_sentences_and_as_keys() -> None:
    ids = Ids()
    assert ids.learn(f"Ticket {A} opened", f"Ticket {B} opened")
    assert ids.as_ours({A: {"id": A, "note": f"see {A}!"}}) == {B: {"id": B, "note": f"see {B}!"}}


def test_one_id_is_mapped_onto_one_id_only() -> None:
    ids = Ids()
    assert ids.learn("id-1", "id-7")
    assert ids.learn("id-1", "id-7")
    assert not ids.learn("id-1", "id-8")
    assert not ids.learn("id-2", "id-7")
    assert not ids.learn("id-7", "id-9")


def test_times_and_small_numbers_are_no_ids() -> None:
    ids = Ids()
    assert ids.learn("2025-10-27T07:10:00", "2025-01-06T09:00:01")
    assert ids.learn(3, 5)
    assert ids.ours == {}
    assert ids.learn(48213, 50017)
    assert ids.as_ours([3, 48213]) == [3, 50017]


def test_keys_that_differ_are_paired_in_their_order() -> None:
    pairs = list(differences({"x": 1, A: {"id": A}}, {"x": 2, B: {"id": B}}))
    assert [(pair.recorded, pair.ours) for pair in pairs] == [(A, B), (A, B), (1, 2)]


def test_lists_of_another_length_differ_as_a_whole() -> None:
    (pair,) = differences({"a": [1]}, {"a": [1, 2]})
    assert pair.pointer == "/a"


@pytest.mark.parametrize(
    ("recorded", "ours", "expected"),
    [
        (f"Ticket {A} opened", f"Ticket {B} opened", True),
        (f"Ticket {A} opened", f"Ticket {B} refused", False),
        ("User not found", f"Ticket {B} opened", False),
        ("overdue", "active", True),
        ("since 2025-10-27", "since 2025-01-06", True),
        (3, 4.5, True),
        (True, False, True),
        (True, 1, False),
        ([1], {"a": 1}, False),
    ],
)
def test_what_chance_or_the_clock_can_have_made_different(recorded: Any, ours: Any, expected: bool) -> None:
    assert alike(recorded, ours) is expected


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2025-10-27T07:10:00Z", datetime(2025, 10, 27, 7, 10)),
        ("2025-10-27", datetime(2025, 10, 27)),
        ("active", None),
        (12, None),
        (True, None),
        ("BILL1004", None),
    ],
)
def test_times_are_told_from_other_values(value: Any, moment: datetime | None) -> None:
    assert moment_of(value) == moment


def test_seconds_and_milliseconds_since_1970_are_times() -> None:
    assert moment_of(1_761_549_000) == moment_of(1_761_549_000_000)
    assert moment_of(1_761_549_000) is not None


def test_an_id_that_the_clock_made_has_a_long_number_and_is_no_time() -> None:
    assert is_clock_id("LOG1761549000", "LOG1736154000")
    assert not is_clock_id("2025-10-27", "2025-01-06")
    assert not is_clock_id("overdue", "active")


TRACEBACK = """Error: <Exception>
Traceback (most recent call last):
  File "base_env.py", line 505, in step
    "content": f"{getattr(self.env_instance, action['name'])(**action['arguments'])}"
{}
"""


@pytest.mark.parametrize(
    ("ending", "kind", "message", "same"),
    [
        (
            "TypeError: f() got an unexpected keyword argument 'x'",
            "TypeError",
            "f() got an unexpected keyword argument 'x'",
            True,
        ),
        (
            "TypeError: f() got an unexpected keyword argument 'x'",
            "TypeError",
            "f() got an unexpected keyword argument 'y'",
            False,
        ),
        ("TypeError: x", "ValueError", "x", False),
        ("json.decoder.JSONDecodeError: Expecting value: line 1", "JSONDecodeError", "Expecting value: line 1", True),
        ("ValueError", "ValueError", "", True),
        ("ValueError: first\nsecond", "ValueError", "first\nsecond", True),
        ("NameError: name 'a' is not defined. Did you mean: 'b'?", "NameError", "name 'a' is not defined", True),
        ("ValueError: " + "x" * 3000, "ValueError", "x" * 1999 + "…", True),
    ],
)
def test_exceptions_are_compared_by_type_and_message(ending: str, kind: str, message: str, same: bool) -> None:
    assert same_exception(TRACEBACK.replace("{}\n", f"{ending}\n"), kind, message) is same
