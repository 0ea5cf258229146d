"""The fences of Markdown in a model's reply, those that are nested, left open or written amiss too.

What stands in them is read elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

PYTHON = frozenset({"", "python", "py", "python3", "ipython", "tool_code"})
_MARK = re.compile(r"^(?P<margin>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*[{.]*(?P<language>[\w+#-]*)(?P<rest>[^`\n]*)$")
_CODE = re.compile(r"(?:async +def|def|class|import|from|@)\b")
_LONE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*$")
_WITHIN = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_HOLDS_FENCES = frozenset({"", "markdown", "md", "text", "txt", "plaintext"})
_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_ANSWER = re.compile(r"\{|\[\s*\"|^[ \t]*(?:```|~~~|@|(?:async|def|class|import|from)\b)", re.MULTILINE)


@dataclass(frozen=True)
class Fence:
    """One fenced block."""

    language: str
    """In lower case; empty where none is named."""
    lines: tuple[str, ...]
    first: int
    """Line of the reply that its first line is."""
    closed: bool
    odd: bool = False
    """Whether code stands on the line that opens it, or it is closed on the last line of the code."""

    @property
    def content(self) -> str:
        """The text within."""
        return "\n".join(self.lines)

    @property
    def is_python(self) -> bool:
        """Whether it is said, or not denied, that this is Python."""
        return self.language in PYTHON


def plain(text: str) -> str:
    """A reply without what comes before its answer as thoughts and without marks of files."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    while (thought := _THOUGHT.search(text)) is not None and not _ANSWER.search(text[: thought.start()]):
        text = text[: thought.start()] + text[thought.end() :]
    return text


def fences_in(text: str, first: int = 0) -> list[Fence]:
    """The fenced blocks of a reply in order; of a block that holds blocks, those."""
    found: list[Fence] = []
    for fence in _outer(text, first):
        content = fence.content
        holds = fence.language in _HOLDS_FENCES and _WITHIN.search(content) is not None
        found += (fences_in(content, fence.first) if holds else []) or [fence]
    return found


def lone_marks(lines: tuple[str, ...] | list[str]) -> list[int]:
    """Numbers of the lines that are nothing but the mark of a fence."""
    return [number for number, line in enumerate(lines) if _LONE.match(line)]


def _outer(text: str, first: int) -> Iterator[Fence]:
    opened: re.Match[str] | None = None
    content: list[str] = []
    start = 0

    def ended(*, closed: bool, odd: bool = False) -> Fence:
        assert opened is not None
        rest = opened["rest"].strip()
        if _CODE.match(rest):
            return Fence(opened["language"].lower(), (rest, *content), first + start - 1, closed, odd=True)
        return Fence(opened["language"].lower(), tuple(content), first + start, closed, odd)

    for number, line in enumerate(text.split("\n")):
        mark = _MARK.match(line)
        if opened is not None and mark is not None and _is_of(mark, opened):
            named = mark["language"] or mark["rest"].strip()
            yield ended(closed=not named)
            # A mark with a language closes nothing: the block before it was left open.
            opened, content, start = (mark if named else None), [], number + 1
        elif opened is not None and _ends_with_mark(line, opened["fence"][:3]):
            content.append(line.rstrip().rstrip("`~"))
            yield ended(closed=True, odd=True)
            opened = None
        elif opened is not None:
            content.append(line)
        elif mark is not None:
            opened, content, start = mark, [], number + 1
    if opened is not None and any(line.strip() for line in content):
        yield ended(closed=False)


def _is_of(mark: re.Match[str], opened: re.Match[str]) -> bool:
    """Whether a mark stands where one may that ends what is open; further in it belongs to a docstring."""
    further = len(mark["margin"].expandtabs(4)) - len(opened["margin"].expandtabs(4))
    return further < 4 and mark["fence"][0] == opened["fence"][0] and len(mark["fence"]) >= len(opened["fence"])


def _ends_with_mark(line: str, mark: str) -> bool:
    return line.rstrip().endswith(mark) and line.count(mark) % 2 == 1 and not line.lstrip().startswith(mark)
