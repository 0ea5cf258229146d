"""Finds the Python source in a model's reply. What had to be made good is told; what was cut off is never completed."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from envscaler.errors import ReplyError
from envscaler.llm.chat import Mending
from envscaler.roles.fences import Fence, fences_in, lone_marks, plain

CUT = "it was cut off at the token limit; give a shorter one"
_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+def|def|class)\b", re.MULTILINE)
_TOP_DEFINITION = re.compile(r"^(?:async[ \t]+def|def|class|@)", re.MULTILINE)
_BEGINS = re.compile(
    r"^[ \t]*(?:(?:async[ \t]+def|def|class)[ \t]+\w|@\w|import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b)"
)
_MOST_TRIES = 40
"""Readings that are tried at most of one text that does not parse as it is."""


@dataclass(frozen=True)
class _Block:
    """Source that could be meant."""

    source: str
    mendings: tuple[Mending, ...] = ()
    fault: str | None = None
    """Why it does not parse; None: it does."""


def code_in(text: str, *, cut: bool = False) -> tuple[str, tuple[Mending, ...]]:
    """The Python source in `text`, and what had to be made good.

    Args:
        cut: the reply ended at the token limit; then only code in a fence that was closed is used.

    Raises:
        ReplyError: if there is none, it was cut off, or it does not parse.
    """
    text = plain(text)
    fences = fences_in(text)
    lost = cut and (not fences or not fences[-1].closed)
    blocks = list(_blocks(text, fences[:-1] if lost else fences))
    if not fences and not cut:
        blocks = [_without_fence(text)]
    usable = [block for block in blocks if block.fault is None and _defines(block.source)]
    if not usable:
        if lost or (cut and not any(fence.is_python for fence in fences)):
            raise ReplyError(CUT, "cut off")
        raise ReplyError(_complaint(text, fences, blocks))
    chosen = max(usable, key=lambda block: len(block.source))
    mendings = list(chosen.mendings)
    if len({block.source for block in usable}) > 1:
        mendings.append("one of several")
    if lost:
        mendings.append("cut tail")
    return chosen.source, tuple(mendings)


def blocks_in(text: str, *, cut: bool = False) -> tuple[tuple[str, ...], tuple[Mending, ...]]:
    """All Python blocks in `text` that define something, whether they parse or not, and what had to be made good.

    Args:
        cut: the reply ended at the token limit; then the definition that it ended in is left out.

    Raises:
        ReplyError: if no block defines anything.
    """
    text = plain(text)
    fences = fences_in(text)
    lost = cut and (not fences or not fences[-1].closed)
    blocks = list(_blocks(text, fences[:-1] if lost else fences))
    if not fences:
        blocks = [_without_fence(text, cut=cut)]
    if lost:
        last = blocks.pop() if not fences else _Block(_dedented(fences[-1].content if fences[-1].is_python else ""))
        kept = last.source[: _last_definition(last.source)]
        blocks.append(_Block(_dedented(kept), (*last.mendings, "cut tail")))
    found = [block for block in blocks if _DEFINITION.search(block.source)]
    if not found:
        raise ReplyError(
            CUT if cut else f"it holds no Python code, but {beginning(text)}", "cut off" if cut else "unreadable"
        )
    mendings: dict[Mending, None] = dict.fromkeys(mending for block in blocks for mending in block.mendings)
    return tuple(block.source for block in found), tuple(mendings)


def beginning(text: str) -> str:
    """What a reply says instead; a reason that a model gives is worth more to a reader than our own."""
    return f"says: {textwrap.shorten(text, 200, placeholder=' …')}"


def _complaint(text: str, fences: Sequence[Fence], blocks: Sequence[_Block]) -> str:
    read = [block for block in blocks if block.source.strip()]
    if not read or (not fences and not _DEFINITION.search(text)):
        return f"it holds no Python code, but {beginning(text)}"
    longest = max(read, key=lambda block: len(block.source))
    if longest.fault is not None:
        return f"the code does not parse: {longest.fault}"
    return "it holds no Python function or class; put the code in a ```python fence"


def _blocks(text: str, fences: Sequence[Fence]) -> Iterator[_Block]:
    """The Python in fences; where none of them is said to hold any, that of the others."""
    lines = text.split("\n")
    python = [fence for fence in fences if fence.is_python and _DEFINITION.search(fence.content)]
    if not python:
        for fence in fences:
            if fence.is_python:
                yield _block(fence.content)
            elif _DEFINITION.search(fence.content) and (block := _block(fence.content, "odd fence")).fault is None:
                yield block
        return
    reached = 0
    for fence in python:
        if fence.first < reached:
            continue  # it is part of the one before
        odd: tuple[Mending, ...] = ("odd fence",) if fence.odd else ()
        block = _block(fence.content, *odd, *(() if fence.closed else ("unclosed fence",)))
        if block.fault is None:
            yield block
            continue
        if fence.closed:
            # A docstring may hold marks of fences, and the first one of them has ended the block.
            later = [number for number in lone_marks(lines) if number > fence.first + len(fence.lines)][:_MOST_TRIES]
            readings = [(lines[fence.first : end], end) for end in later]
            mending: Mending = "odd fence"
        else:
            # The mark that closes it may stand further in than one may.
            readings = [(list(fence.lines[:end]), 0) for end in reversed(lone_marks(fence.lines)[:_MOST_TRIES])]
            mending = "unclosed fence"
        for content, end in readings:
            longer = _block("\n".join(content), mending)
            if longer.fault is None:
                block, reached = longer, end
                break
        yield block


def _block(content: str, *mendings: Mending) -> _Block:
    source = _dedented(content)
    return _Block(source, mendings, _fault(source))


def _without_fence(text: str, *, cut: bool = False) -> _Block:
    """The code in a reply without fences: all of it, or from the first line of code on as long as it parses."""
    whole = _block(text, "no fence")
    if whole.fault is None:
        return whole
    lines = text.split("\n")
    begins = [number for number, line in enumerate(lines) if _BEGINS.match(line)]
    defines = [number for number in begins if _DEFINITION.match(lines[number])]
    if not defines:
        return whole
    if cut:
        return _Block(_dedented("\n".join(lines[begins[0] :])), ("no fence",))
    for first in dict.fromkeys((begins[0], defines[0])):
        margin = len(lines[first]) - len(lines[first].lstrip())
        ends = [
            number
            for number in range(first + 1, len(lines))
            if lines[number].strip() and len(lines[number]) - len(lines[number].lstrip()) <= margin
        ]
        for end in [len(lines), *reversed(ends)][:_MOST_TRIES]:
            block = _block("\n".join(lines[first:end]), "no fence")
            if block.fault is None and _defines(block.source):
                return block
    return whole


def _fault(source: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is no fault of the reply
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        return f"{getattr(error, 'msg', error)}{f' (line {line})' if line else ''}"
    return None


def _defines(source: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = ast.parse(source).body
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in body)


def _last_definition(source: str) -> int:
    return max((match.start() for match in _TOP_DEFINITION.finditer(source)), default=0)


def _dedented(source: str) -> str:
    return textwrap.dedent(source).strip() + "\n"
