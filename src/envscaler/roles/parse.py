"""Finds the JSON object or the Python source in a model's reply. Nothing guessed is returned unmarked."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from envscaler.errors import ReplyError
from envscaler.state import JsonValue

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_PYTHON = {"python", "py", "python3", ""}


def json_in(text: str, *, cut: bool = False) -> tuple[dict[str, JsonValue], bool]:
    """The JSON object in `text`, and whether it had to be mended.

    Args:
        cut: the reply ended at the token limit; then nothing is mended, because what is missing is not known.

    Raises:
        ReplyError: if there is none.
    """
    for candidate in _json_candidates(text):
        try:
            value = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value, False
    if cut:
        raise ReplyError("it was cut off at the token limit; give a shorter one")
    start = text.find("{")
    if start >= 0:
        # Trailing commas, single quotes, comments: a library knows more of these than we would.
        from json_repair import repair_json

        value = repair_json(text[start:], return_objects=True, skip_json_loads=True)
        if isinstance(value, dict) and value:
            return value, True
    raise ReplyError("it holds no JSON object")


def _json_candidates(text: str) -> Iterator[str]:
    stripped = text.strip()
    yield stripped
    for match in _FENCE.finditer(text):
        yield match.group(3).strip()
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text):
        try:
            _, end = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        yield text[match.start() : end]
        return


def code_in(text: str, *, cut: bool = False) -> tuple[str, bool]:
    """The Python source in `text`, and whether it had to be mended (no fence, or an unclosed one).

    Raises:
        ReplyError: if there is none, it was cut off, or it does not parse.
    """
    blocks = [match.group(3) for match in _FENCE.finditer(text) if match.group(2).lower() in _PYTHON]
    mended = False
    if not blocks:
        if cut:
            raise ReplyError("it was cut off at the token limit; give a shorter one")
        opened = re.search(
            r"^[ \t]*(?:`{3,}|~{3,})[ \t]*(?:python|py|python3)?[ \t]*\n(.*)\Z", text, re.DOTALL | re.MULTILINE
        )
        blocks, mended = [opened.group(1) if opened else text], True
    source = max(blocks, key=len).strip("\n")
    try:
        tree = ast.parse(_dedented(source))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        raise ReplyError(f"the code does not parse: {getattr(error, 'msg', error)}{where}") from error
    if not any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for node in tree.body):
        raise ReplyError("it holds no Python function or class; put the code in a ```python fence")
    return _dedented(source), mended


def _dedented(source: str) -> str:
    import textwrap

    return textwrap.dedent(source).strip() + "\n"
