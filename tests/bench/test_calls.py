from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envscaler.bench.inside.calls import MADE_UP, parsed, rendered

KNOWN = ("sort", "echo")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TRICKY = st.sampled_from(
    ["sort(x)", "echo (a='b')", 'say "hi"', "it's", "\\(", "\\", "{'a': 1}", "電燈\u2028", "\ud800"]
)
ARGUMENTS = st.dictionaries(st.text(min_size=1), JSON | TRICKY, max_size=4)
NAMED = st.dictionaries(st.from_regex(r"[a-z_]{1,8}x", fullmatch=True), JSON | TRICKY, max_size=4)


patient = settings(suppress_health_check=[HealthCheck.too_slow])
"""Arguments within arguments take long to draw on a busy machine."""


def rewritten(text: str) -> str:
    """What BFCL makes of a call before it evaluates it: whatever looks like a call is given an instance."""
    return re.sub(
        r"\b([a-zA-Z_]\w*)\s*(?=\()", lambda found: f"home.{found[1]}" if found[1] in KNOWN else found[1], text
    )


def read(text: str) -> tuple[str, dict[str, Any]]:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    arguments: dict[str, Any] = {}
    for keyword in call.keywords:
        value = ast.literal_eval(keyword.value)
        arguments |= {keyword.arg: value} if keyword.arg is not None else value
    return ast.unparse(call.func), arguments


@patient
@given(st.sampled_from(KNOWN), ARGUMENTS | NAMED)
def test_any_arguments_reach_the_tool_as_they_are(name: str, arguments: dict[str, Any]) -> None:
    text = rendered(name, arguments, KNOWN.__contains__)
    assert read(rewritten(text)) == (f"home.{name}", arguments)


@patient
@given(st.text(), NAMED)
def test_a_name_that_no_tool_has_is_never_written(name: str, arguments: dict[str, Any]) -> None:
    if name not in KNOWN:
        assert read(rendered(name, arguments, KNOWN.__contains__))[0] == MADE_UP


@patient
@given(NAMED)
def test_what_is_written_is_read_again(arguments: dict[str, Any]) -> None:
    assert parsed(rendered("echo", arguments, KNOWN.__contains__), lambda _: ()) == ("echo", arguments)


def test_ordinary_arguments_are_written_as_bfcl_writes_them() -> None:
    arguments = {"file_name": "a b.txt", "lines": 3, "deep": {"on": True, "list": [1.5, None]}}
    expected = f"sort({','.join(f'{key}={value!r}' for key, value in arguments.items())})"
    assert rendered("sort", arguments, KNOWN.__contains__) == expected


def test_numbers_that_python_has_no_literal_for_are_no_names() -> None:
    text = rendered("sort", {"a": float("inf"), "b": float("nan")}, KNOWN.__contains__)
    assert text == "sort(a=float('inf'),b=float('nan'))"


def test_arguments_that_are_nested_too_deep_become_a_call_that_fails() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert rendered("sort", {"a": deep}, KNOWN.__contains__) == f"{MADE_UP}()"


def test_arguments_without_a_name_get_that_of_their_place() -> None:
    assert parsed("sort('a.txt', lines=2)", lambda _: ("file_name", "lines")) == (
        "sort",
        {"file_name": "a.txt", "lines": 2},
    )


@pytest.mark.parametrize("text", ["sort", "a.sort()", "sort(x=y)", "sort(1, 2)", "sort(**{'a': 1})", "sort(", "1 + 1"])
def test_what_is_more_than_a_call_of_a_tool_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(text, lambda _: ("only",))
