"""Takes the reasoning out of a reply: `<think>…</think>`, also where the template has opened it or it never ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_LEADING = re.compile(r"\s*<(?:think|thinking)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_AT_LINE = re.compile(r"^[ \t]*<(?:think|thinking)>", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Thought:
    """A reply in its two parts."""

    reasoning: str | None
    rest: str
    closed: bool = True
    """False when the reasoning goes on to the end of the reply."""


def split_thinking(text: str, is_inside: Callable[[str, int], bool]) -> Thought:
    """The reasoning of a reply and the rest of it.

    Args:
        is_inside: whether a place of a text lies within a call, where tags are part of a value.
    """
    thoughts: list[str] = []
    rest = text
    while opening := _LEADING.match(rest):
        closing = _CLOSE.search(rest, opening.end())
        if closing is None:
            thoughts.append(rest[opening.end() :])
            return Thought(_joined(thoughts), "", closed=False)
        thoughts.append(rest[opening.end() : closing.start()])
        rest = rest[closing.end() :]
    if not thoughts:
        closing = _CLOSE.search(rest)
        opened = closing is not None and "<think" in rest[: closing.start()].lower()
        if closing is not None and not opened and not is_inside(rest, closing.start()):
            thoughts.append(rest[: closing.start()])
            rest = rest[closing.end() :]
    position = 0
    while opening := _AT_LINE.search(rest, position):
        position = opening.end()
        if is_inside(rest, opening.start()):
            continue
        closing = _CLOSE.search(rest, opening.end())
        end = closing.end() if closing is not None else len(rest)
        thoughts.append(rest[opening.end() : closing.start() if closing is not None else end])
        rest, position = rest[: opening.start()] + rest[end:], opening.start()
    return Thought(_joined(thoughts), rest)


def _joined(thoughts: list[str]) -> str | None:
    return "\n".join(thought.strip() for thought in thoughts if thought.strip()) or None
