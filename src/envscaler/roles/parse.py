"""Finds the JSON object or the Python source in a model's reply. Nothing guessed is returned unmarked."""

from __future__ import annotations

import ast
import json
import re
import textwrap
import warnings
from collections.abc import Iterator

from envscaler.errors import NotJson, ReplyError
from envscaler.state import JsonValue, canonical

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_OPENED = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*(?:python|py|python3)?[ \t]*\n(.*)\Z", re.DOTALL | re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+def|def|class)\b", re.MULTILINE)
_TOP_DEFINITION = re.compile(r"^(?:async[ \t]+def|def|class|@)", re.MULTILINE)
_PYTHON = {"python", "py", "python3", ""}
_CUT = "it was cut off at the token limit; give a shorter one"


def json_in(text: str, *, cut: bool = False) -> tuple[dict[str, JsonValue], bool]:
    """The JSON object in `text`, and whether it had to be mended.

    Args:
        cut: the reply ended at the token limit; then nothing is mended, because what is missing is not known.

    Raises:
        ReplyError: if there is none, or it holds what JSON cannot (NaN, huge integers).
    """
    groups: list[str] = []
    for candidate in _json_candidates(text):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            groups.append(candidate)
            continue
        if isinstance(value, dict):
            return _checked(value), False
    if cut:
        raise ReplyError(_CUT, "cut off")
    # Trailing commas, single quotes, comments: a library knows more of these than we would.
    from json_repair import repair_json

    for group in groups:
        if not group.startswith("{"):
            continue
        try:
            value = repair_json(group, return_objects=True, skip_json_loads=True)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value:
            return _checked(value), True
    raise ReplyError(f"it holds no JSON object, but {_beginning(text)}")


def _beginning(text: str) -> str:
    """What a reply says instead; a reason that a model gives is worth more to a reader than our own."""
    return f"says: {textwrap.shorten(text, 200, placeholder=' …')}"


def _checked(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        canonical(value)
    except NotJson as error:
        raise ReplyError(f"its JSON cannot be stored: {error}") from error
    return value


def _json_candidates(text: str) -> Iterator[str]:
    """Parts of `text` that may be the object: all of it, fenced blocks, groups in braces, largest first."""
    yield text.strip()
    for match in _FENCE.finditer(text):
        yield match.group(3).strip()
    yield from sorted(_brace_groups(text), key=len, reverse=True)


def _brace_groups(text: str) -> Iterator[str]:
    """The outermost groups in braces; the last one may lack its end.

    An inner object of one that does not parse is no candidate: it would pass for the whole reply.
    """
    depth, start, quoted, escaped = 0, 0, False, False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif depth and quoted:
            escaped = character == "\\"
            quoted = character != '"'
        elif character == "{":
            start = position if depth == 0 else start
            depth += 1
        elif depth and character == '"':
            quoted = True
        elif depth and character == "}":
            depth -= 1
            if depth == 0:
                yield text[start : position + 1]
    if depth:
        yield text[start:]


def code_in(text: str, *, cut: bool = False) -> tuple[str, bool]:
    """The Python source in `text`, and whether it had to be mended (no fence, or an unclosed one).

    Raises:
        ReplyError: if there is none, it was cut off, or it does not parse.
    """
    fences = list(_FENCE.finditer(text))
    if cut and (not fences or _OPENED.search(text, fences[-1].end())):
        raise ReplyError(_CUT, "cut off")
    blocks = [match.group(3) for match in fences if match.group(2).lower() in _PYTHON]
    mended = not blocks
    if mended:
        opened = _OPENED.search(text)
        blocks = [opened.group(1) if opened else text]
    source = _dedented(max(blocks, key=len))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is no fault of the reply
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if not fences and not _DEFINITION.search(source):
            raise ReplyError(f"it holds no Python code, but {_beginning(text)}") from error
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        raise ReplyError(f"the code does not parse: {getattr(error, 'msg', error)}{where}") from error
    if not any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for node in tree.body):
        raise ReplyError("it holds no Python function or class; put the code in a ```python fence")
    return source, mended


def blocks_in(text: str, *, cut: bool = False) -> tuple[tuple[str, ...], bool]:
    """All Python blocks in `text`, whether they parse or not, and whether they had to be mended as in `code_in`.

    Args:
        cut: the reply ended at the token limit; then the definition that it ended in is left out.

    Raises:
        ReplyError: if no block defines anything.
    """
    fences = list(_FENCE.finditer(text))
    blocks = [match.group(3) for match in fences if match.group(2).lower() in _PYTHON]
    opened = _OPENED.search(text, fences[-1].end() if fences else 0)
    if opened is not None or not blocks:
        rest = opened.group(1) if opened is not None else text
        blocks.append(rest[: _last_definition(rest)] if cut else rest)
    blocks = [_dedented(block) for block in blocks if _DEFINITION.search(block)]
    if not blocks:
        raise ReplyError(
            _CUT if cut else f"it holds no Python code, but {_beginning(text)}", "cut off" if cut else "unreadable"
        )
    return tuple(blocks), opened is not None or not fences


def _last_definition(source: str) -> int:
    return max((match.start() for match in _TOP_DEFINITION.finditer(source)), default=0)


def _dedented(source: str) -> str:
    return textwrap.dedent(source).strip() + "\n"
