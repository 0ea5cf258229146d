"""Finding code in what models write around it."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envscaler.errors import ReplyError
from envscaler.roles.code import blocks_in, code_in

METHOD = 'def find(self) -> dict:\n    return {"success": True}\n'
FENCED = "First:\n```python\ndef a():\n    return 1\n```\nthen\n```py\n  def b(:\n      pass\n```\n```json\n{}\n```"
LINES = st.sampled_from(
    [
        "```",
        "```python",
        "~~~",
        "````md",
        "    ```",
        "def f():",
        "    return 1",
        "x = 1```",
        "Well.",
        '    """',
        "{",
        "",
    ]
)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (f"```python\n{METHOD}```", ()),
        (f"Here you are:\n\n```py\n{METHOD}```\nIt never raises.", ()),
        (f"   ```\n{METHOD}   ```", ()),
        (f"~~~python\n{METHOD}~~~", ()),
        (f"````markdown\n```python\n{METHOD}```\n````", ()),
        (METHOD, ("no fence",)),
        (f"Sure.\n```python\n{METHOD}", ("unclosed fence",)),
        ("```python\n" + "".join(f"    {line}\n" for line in METHOD.splitlines()) + "```", ()),
    ],
)
def test_code_is_found_and_dedented(text: str, mended: tuple[str, ...]) -> None:
    assert code_in(text) == (METHOD, mended)


def test_the_python_block_that_defines_something_is_the_answer_and_other_languages_are_not() -> None:
    text = f'```json\n{{"a": "{"long " * 99}"}}\n```\n```python\nimport re\n```\n```python\n{METHOD}```'
    assert code_in(text) == (METHOD, ())


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
    assert code_in(f"```python\n{source}```") == (source, ())


def test_all_python_blocks_are_found_whether_they_parse_or_not() -> None:
    assert blocks_in(FENCED) == (("def a():\n    return 1\n", "def b(:\n    pass\n"), ())
    assert blocks_in("def a(): return 1") == (("def a(): return 1\n",), ("no fence",))
    assert blocks_in("```python\ndef a():\n    return 1\n") == (("def a():\n    return 1\n",), ("unclosed fence",))


def test_of_blocks_that_were_cut_off_the_last_definition_is_left_out() -> None:
    text = "def a():\n    return 1\n\ndef b():\n    return a() == 1"
    assert blocks_in(f"```python\n{text}", cut=True) == (("def a():\n    return 1\n",), ("cut tail",))
    assert blocks_in(text, cut=True) == (("def a():\n    return 1\n",), ("no fence", "cut tail"))
    for fence in ("```python\n", ""):
        with pytest.raises(ReplyError, match="cut off"):
            blocks_in(f"{fence}def b():\n    return 1", cut=True)


@pytest.mark.parametrize("text", ["no", "```json\n{}\n```", "```python\nx = 1\n```"])
def test_blocks_without_a_definition_are_no_code(text: str) -> None:
    with pytest.raises(ReplyError, match="holds no Python code"):
        blocks_in(text)


@settings(deadline=None)
@given(st.lists(LINES, max_size=14).map("\n".join) | st.text(), st.booleans())
@example("```python\ndef f():\n    return 1\n    ```", False)
def test_any_text_gives_code_that_parses_or_a_reply_error(text: str, cut: bool) -> None:
    try:
        source, _ = code_in(text, cut=cut)
    except ReplyError:
        return
    ast.parse(source)
    # Nothing is made up: every line stands in the reply.
    assert {line.strip().rstrip("`") for line in source.split("\n")} <= {
        part.strip().rstrip("`") for line in text.splitlines() for part in (line, line.lstrip("`~python "))
    }


@settings(deadline=None)
@given(st.lists(LINES, max_size=14).map("\n".join) | st.text(), st.booleans())
def test_blocks_of_any_text_are_found_or_refused(text: str, cut: bool) -> None:
    try:
        blocks, _ = blocks_in(text, cut=cut)
    except ReplyError:
        return
    assert all("def" in block or "class" in block for block in blocks)


@settings(deadline=None)
@given(st.integers(0, 4), st.lists(LINES, max_size=14).map("\n".join))
def test_what_ends_at_the_limit_within_a_fence_is_never_read_to_its_end(before: int, tail: str) -> None:
    whole = "".join(f"```python\ndef f{index}():\n    return {index}\n```\n" for index in range(before))
    text = f"{whole}````python\ndef cut_off():\n    return 1\n{tail.replace('`', '').replace('~', '')}"
    if not before:
        with pytest.raises(ReplyError) as refused:
            code_in(text, cut=True)
        assert refused.value.kind == "cut off"
        return
    source, mended = code_in(text, cut=True)
    assert "cut_off" not in source
    assert "cut tail" in mended
