"""Finding JSON in what models write around it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.errors import ReplyError
from envscaler.llm.chat import Mending
from envscaler.roles.objects import Found, json_in

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON_VALUES, min_size=1, max_size=4)


def best(text: str, *, cut: bool = False) -> tuple[object, tuple[Mending, ...]]:
    found = json_in(text, cut=cut)[0]
    return found.value, found.mendings


@settings(deadline=None)
@given(OBJECTS)
def test_an_object_is_found_as_it_is_whatever_its_content(value: dict[str, object]) -> None:
    assert json_in(json.dumps(value, ensure_ascii=False)) == [Found(value)]


@settings(deadline=None)
@given(OBJECTS, st.sampled_from(["", "Sure! Here it is:\n", "For {id} I take the following.\n", "<p>", "I have {"]))
def test_an_object_is_found_in_a_fence_and_in_prose(value: dict[str, object], before: str) -> None:
    text = json.dumps(value)
    assert json_in(f"{before}\n```json\n{text}\n```\nI hope this helps {{name}}.") == [Found(value)]
    assert json_in(f"{before}{text}\nDone.") == [Found(value)]


@settings(deadline=None)
@given(OBJECTS)
def test_what_python_prints_is_read_as_what_it_is_or_refused(value: dict[str, object]) -> None:
    try:
        found, mended = best(repr(value))
    except ReplyError:
        return
    assert found == value
    assert mended in ((), ("JSON syntax",))


@settings(deadline=None)
@given(OBJECTS, st.data())
def test_what_the_limit_cut_off_is_never_completed(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    with pytest.raises(ReplyError) as refused:
        json_in(cut, cut=True)
    assert refused.value.kind == "cut off"


@settings(deadline=None)
@given(OBJECTS, st.data())
def test_what_was_not_ended_is_marked_where_it_is_read_and_has_nothing_that_was_not_said(
    value: dict[str, object], data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=False)
    try:
        found, mended = best(text[: data.draw(st.integers(1, len(text) - 1))])
    except ReplyError:
        return
    assert "unclosed JSON" in mended
    assert len(json.dumps(found, ensure_ascii=False)) <= len(text)


@settings(deadline=None)
@given(OBJECTS, st.data())
def test_one_character_lost_is_never_made_good_unmarked(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    at = data.draw(st.integers(0, len(text) - 1))
    wrong = text[:at] + text[at + 1 :]
    try:
        found, mended = best(wrong)
    except ReplyError:
        return
    if not mended:
        assert json.loads(wrong[wrong.index("{") : wrong.rindex("}") + 1]) == found


@pytest.mark.parametrize(
    ("text", "value", "mended"),
    [
        ('{"stateful": true, "reason": "x",}', {"stateful": True, "reason": "x"}, ("JSON syntax",)),
        ("{'reason': 'x'}", {"reason": "x"}, ("JSON syntax",)),
        (
            '```json\n{"reason": "x", // why\n "stateful": false}\n```',
            {"reason": "x", "stateful": False},
            ("JSON syntax",),
        ),
        ('Here is {it}: {"reason": "x"', {"reason": "x"}, ("unclosed JSON",)),
    ],
)
def test_a_mended_object_says_so(text: str, value: dict[str, object], mended: tuple[str, ...]) -> None:
    assert best(text) == (value, mended)


def test_an_inner_object_never_passes_for_a_broken_reply() -> None:
    with pytest.raises(ReplyError, match="does not parse"):
        json_in('{"state": {"tools": {"T-1": {"id": "T-1"}}}, "note": oops()}')


@pytest.mark.parametrize(
    "text",
    ['{"a": }', '{"a": 5 apples}', '{"a": 12e}', '{"a": "x", "b"}', '{"a": ...}', '{"a": "x", \'a\': "y"}', '{"a": -}'],
)
def test_what_could_only_be_guessed_is_asked_for_again(text: str) -> None:
    with pytest.raises(ReplyError, match="does not parse") as refused:
        json_in(text)
    assert refused.value.kind == "unreadable"


def test_a_cut_reply_is_not_mended_but_a_complete_one_before_the_cut_counts() -> None:
    with pytest.raises(ReplyError, match="cut off"):
        json_in('{"state": {"tools": {"T-1": {}}', cut=True)
    assert best('{"a": 1}\nNow let me explain', cut=True) == ({"a": 1}, ())
    assert best('{"a": 1}\nAnd {"a": 2, "b"', cut=True) == ({"a": 1}, ("cut tail",))


@pytest.mark.parametrize("text", ["", "I cannot help with that.", "[1, 2]", "{", "null", "}{"])
def test_a_reply_without_an_object_is_a_reply_error(text: str) -> None:
    with pytest.raises(ReplyError, match="no JSON object"):
        json_in(text)


@pytest.mark.parametrize("part", ["NaN", "-Infinity", "1" * 30])
def test_what_json_cannot_store_is_a_reply_error(part: str) -> None:
    with pytest.raises(ReplyError, match="cannot be stored"):
        json_in(f'{{"a": {part}}}')


@pytest.mark.parametrize("text", ['{"a":' * 100_000, '{"a": 1}' * 5_000, "{'a'" * 20_000, '["a' * 50_000])
def test_nesting_and_repetition_without_end_take_no_time(text: str) -> None:
    try:
        assert len(json_in(text)) <= 200
    except ReplyError:
        return


@settings(deadline=None)
@given(st.text(max_size=200) | st.text(alphabet="{}[]\"',:at1 \n`.\\", max_size=60), st.booleans())
def test_any_text_gives_values_or_a_reply_error(text: str, cut: bool) -> None:
    try:
        found = json_in(text, cut=cut)
    except ReplyError:
        return
    assert all(isinstance(one.value, dict | list) for one in found)
