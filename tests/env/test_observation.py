from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from envscaler.env.observation import observe, result_text, unknown_tool_text
from envscaler.sandbox import Outcome, ToolFault

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_observation_reads_back_as_the_result(result: object) -> None:
    assert json.loads(result_text(result)) == result


def test_json_observation_keeps_characters_as_they_are_and_keys_in_order() -> None:
    assert result_text({"b": "Œuvres 图书", "a": 1}) == '{"b":"Œuvres 图书","a":1}'


def test_lone_surrogate_is_escaped_instead_of_ending_the_episode() -> None:
    text = result_text({"name": "\ud800"})
    assert json.loads(text) == {"name": "\ud800"}
    text.encode("utf-8")


def test_released_observation_is_what_python_prints() -> None:
    assert result_text({"ok": True, "none": None}, "released") == "{'ok': True, 'none': None}"


def test_fault_reads_as_an_error_that_names_the_exception() -> None:
    outcome = Outcome(
        result=None, fault=ToolFault(kind="raised", type="KeyError", message="'L9'"), digest="", changed=False
    )
    assert observe(outcome) == "Error: the tool raised KeyError: 'L9'; nothing was changed"


def test_unknown_tool_suggests_the_nearest_name() -> None:
    assert "did you mean lend_book?" in unknown_tool_text("lend_bok", ["lend_book", "find_books"])


def test_unknown_tool_without_a_near_name_lists_all() -> None:
    assert "find_books, lend_book" in unknown_tool_text("zzz", ["lend_book", "find_books"])


def test_an_exception_without_a_message_is_named_once() -> None:
    for message in ("", "  "):
        outcome = Outcome(result=None, fault=ToolFault("raised", "MemoryError", message), digest="", changed=False)
        assert observe(outcome) == "Error: the tool raised MemoryError; nothing was changed"
    told = Outcome(result=None, fault=ToolFault("raised", "KeyError", "'B1'"), digest="", changed=False)
    assert "raised KeyError: 'B1';" in observe(told)
