"""Calls as ACEBench writes them: one text in square brackets for each message of an agent, and back.

Recorded texts hold apostrophes inside of single quotes, which no parser of Python reads; here they are read as what
they say.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

_QUOTES = "'\""
_AFTER_TEXT = frozenset(",)]}:")
"""What follows the end of a text in a call; any other quote is a part of the text."""

Call = tuple[str, dict[str, Any]]


def written(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """The message that makes these calls."""
    texts = (f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in calls)
    return f"[{', '.join(texts)}]"


def read(text: str) -> list[Call]:
    """The calls of a recorded message.

    Raises:
        ValueError: if it is none, also where its apostrophes are taken for what they are.
    """
    text = text.strip()
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        try:
            tree = ast.parse(_escaped(text), mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"{text!r} holds no calls: {error}") from error
    if not isinstance(tree, ast.List):
        raise ValueError(f"{text!r} is no list of calls")
    return [_call(part, text) for part in tree.elts]


def _call(tree: ast.expr, text: str) -> Call:
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.args:
        raise ValueError(f"{text!r} holds something that is no call with named arguments")
    return tree.func.id, {str(keyed.arg): ast.literal_eval(keyed.value) for keyed in tree.keywords}


def _escaped(text: str) -> str:
    """The text with a backslash before each quote that stands inside of a text."""
    out: list[str] = []
    inside = ""
    for index, char in enumerate(text):
        if inside and char == inside:
            if _ends(text, index):
                inside = ""
            else:
                out.append("\\")
        elif not inside and char in _QUOTES:
            inside = char
        out.append(char)
    return "".join(out)


def _ends(text: str, index: int) -> bool:
    rest = text[index + 1 :].lstrip()
    return not rest or rest[0] in _AFTER_TEXT
