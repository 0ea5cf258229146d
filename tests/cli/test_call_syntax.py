from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.cli.call_syntax import CallSyntaxError, parse_arguments

SCHEMA = {
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array"},
    }
}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        ("name=Ann count=2", {"name": "Ann", "count": 2}),
        ("Ann 2", {"name": "Ann", "count": 2}),
        ('name="Ann Lee", count=2', {"name": "Ann Lee", "count": 2}),
        ("name='Ann Lee' tags=[1, 2]", {"name": "Ann Lee", "tags": [1, 2]}),
        ("name=007", {"name": "007"}),
        ("note=null", {"note": None}),
        ("note=hello", {"note": "hello"}),
        ("count=True", {"count": True}),
        ("count = 3", {"count": 3}),
        ('{"name": "Ann", "count": 2}', {"name": "Ann", "count": 2}),
        ("other=1", {"other": 1}),
        ("名=1 count=2", {"name": "名=1", "count": 2}),
    ],
)
def test_arguments_are_read_as_a_person_means_them(text: str, arguments: dict[str, object]) -> None:
    assert parse_arguments(text, SCHEMA) == arguments


@pytest.mark.parametrize(
    "text",
    ['{"name": ', '{"name": 1} more', "name='open", 'name="open', "name=a name=b", "a 1 b [] too-many", "tags=[1,"],
)
def test_what_is_no_call_is_refused(text: str) -> None:
    with pytest.raises(CallSyntaxError):
        parse_arguments(text, SCHEMA)


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), VALUES, max_size=4))
def test_an_object_of_json_is_read_as_it_is(arguments: dict[str, object]) -> None:
    assert parse_arguments(json.dumps(arguments), {}) == arguments


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_arguments(text, SCHEMA)
    except CallSyntaxError as error:
        words = str(error)
    else:
        words = "read"
    assert words


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=30))
def test_a_quoted_text_stays_what_it_is(text: str) -> None:
    assert parse_arguments(f"name={json.dumps(text)} count=1", SCHEMA) == {"name": text, "count": 1}
