"""Finding JSON and code in what models write around them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.errors import ReplyError
from envscaler.roles.parse import blocks_in, code_in, json_in

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

METHOD = 'def find(self) -> dict:\n    return {"success": True}\n'


@given(OBJECTS)
def test_an_object_is_found_as_it_is_whatever_its_content(value: dict[str, object]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert json_in(text) == (value, False)


@given(OBJECTS, st.sampled_from(["", "Sure! Here it is:\n", "For {id} I take the following.\n", "<p>"]))
def test_an_object_is_found_in_a_fence_and_in_prose(value: dict[str, object], before: str) -> None:
    text = json.dumps(value)
    assert json_in(f"{before}\n```json\n{text}\n```\nI hope this helps {{name}}.") == (value, False)
    assert json_in(f"{before}{text}\nDone.") == (value, False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"stateful": true, "reason": "x",}', {"stateful": True, "reason": "x"}),
        ("{'reason': 'x'}", {"reason": "x"}),
        ('```json\n{"reason": "x", // why\n "stateful": false}\n```', {"reason": "x", "stateful": False}),
        ('Here is {it}: {"reason": "x"', {"reason": "x"}),
    ],
)
def test_a_mended_object_says_so(text: str, value: dict[str, object]) -> None:
    assert json_in(text) == (value, True)


def test_an_inner_object_never_passes_for_a_broken_reply() -> None:
    value, mended = json_in('{"state": {"tools": {"T-1": {"id": "T-1"}}}, "note": oops}')
    assert mended
    assert "state" in value


def test_a_cut_reply_is_not_mended_but_a_complete_one_before_the_cut_counts() -> None:
    with pytest.raises(ReplyError, match="cut off"):
        json_in('{"state": {"tools": {"T-1": {}}', cut=True)
    assert json_in('{"a": 1}\nNow let me explain {', cut=True) == ({"a": 1}, False)


@pytest.mark.parametrize("text", ["", "I cannot help with that.", "[1, 2]", "{}{}"[:1], "null", "}{"])
def test_a_reply_without_an_object_is_a_reply_error(text: str) -> None:
    with pytest.raises(ReplyError, match="no JSON object"):
        json_in(text)


@pytest.mark.parametrize("part", ["NaN", "-Infinity", "1" * 30])
def test_what_json_cannot_store_is_a_reply_error(part: str) -> None:
    with pytest.raises(ReplyError, match="cannot be stored"):
        json_in(f'{{"a": {part}}}')


def test_nesting_without_end_is_a_reply_error() -> None:
    with pytest.raises(ReplyError):
        json_in('{"a":' * 100_000)


@given(st.text(max_size=200))
def test_any_text_gives_an_object_or_a_reply_error(text: str) -> None:
    try:
        value, _ = json_in(text)
    except ReplyError:
        return
    assert isinstance(value, dict)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (f"```python\n{METHOD}```", False),
        (f"Here you are:\n\n```py\n{METHOD}```\nIt never raises.", False),
        (f"   ```\n{METHOD}   ```", False),
        (f"~~~python\n{METHOD}~~~", False),
        (METHOD, True),
        (f"Sure.\n```python\n{METHOD}", True),
        ("```python\n" + "".join(f"    {line}\n" for line in METHOD.splitlines()) + "```", False),
    ],
)
def test_code_is_found_and_dedented(text: str, mended: bool) -> None:
    assert code_in(text) == (METHOD, mended)


def test_the_longest_python_block_is_the_answer_and_other_languages_are_not() -> None:
    text = f'```json\n{{"a": "{"long " * 99}"}}\n```\n```python\nimport re\n```\n```python\n{METHOD}```'
    assert code_in(text) == (METHOD, False)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```python\ndef f(:\n```", "does not parse.*line 1"),
        ("```python\nx = 1\n```", "no Python function or class"),
        ("As an assistant I would rather not.", "no Python code, but says: As an assistant"),
        ("```python\n" + "(" * 5000 + "\n```", "does not parse"),
    ],
)
def test_code_that_cannot_be_used_is_named(text: str, fault: str) -> None:
    with pytest.raises(ReplyError, match=fault):
        code_in(text)


@pytest.mark.parametrize("text", [f"```python\n{METHOD}", METHOD, f"```python\nx\n```\nNow:\n```python\n{METHOD}"])
def test_code_cut_at_the_limit_is_not_used(text: str) -> None:
    with pytest.raises(ReplyError, match="cut off"):
        code_in(text, cut=True)


def test_an_odd_escape_in_code_is_no_fault() -> None:
    source = 'def check_func(final_state):\n    import re\n    return bool(re.match("\\d", "1"))\n'
    assert code_in(f"```python\n{source}```") == (source, False)


FENCED = "First:\n```python\ndef a():\n    return 1\n```\nthen\n```py\n  def b(:\n      pass\n```\n```json\n{}\n```"


def test_all_python_blocks_are_found_whether_they_parse_or_not() -> None:
    assert blocks_in(FENCED) == (("def a():\n    return 1\n", "def b(:\n    pass\n"), False)
    assert blocks_in("def a(): return 1") == (("def a(): return 1\n",), True)
    assert blocks_in("```python\ndef a():\n    return 1\n") == (("def a():\n    return 1\n",), True)


@pytest.mark.parametrize("fence", ["```python\n", ""])
def test_of_blocks_that_were_cut_off_the_last_definition_is_left_out(fence: str) -> None:
    text = f"{fence}def a():\n    return 1\n\ndef b():\n    return a() == 1"
    assert blocks_in(text, cut=True) == (("def a():\n    return 1\n",), True)
    with pytest.raises(ReplyError, match="cut off"):
        blocks_in(f"{fence}def b():\n    return 1", cut=True)


@pytest.mark.parametrize("text", ["no", "```json\n{}\n```", "```python\nx = 1\n```"])
def test_blocks_without_a_definition_are_no_code(text: str) -> None:
    with pytest.raises(ReplyError, match="holds no Python code"):
        blocks_in(text)


@given(st.text())
def test_blocks_of_any_text_are_found_or_refused(text: str) -> None:
    try:
        blocks, _ = blocks_in(text)
    except ReplyError:
        return
    assert all("def" in block or "class" in block for block in blocks)
