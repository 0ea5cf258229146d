"""Consoles and JSON on standard output, safe for any text that a model wrote.

What is shown is decided in the commands; progress is `progress`'s business.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from envscaler.report.wording import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

_WIDTH_OF_PIPES = 140
"""Columns when standard output is no terminal: whoever reads a pipe wants whole cells."""


def console(*, stderr: bool = False) -> Console:
    """A console that interprets no markup and colours no text by guesswork."""
    import os

    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH_OF_PIPES

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            # rich would end the process with 1; whoever closes a pipe has seen enough, which is no failure.
            raise BrokenPipeError

    return Quiet(stderr=stderr, markup=False, highlight=False, emoji=False, width=width)


def emit_json(value: Any) -> None:
    """Print a record or plain JSON data as the one object on standard output."""
    from pydantic import BaseModel

    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(plain, ensure_ascii=not utf8, indent=2) + "\n")


def text_of(value: str, style: str = "") -> Text:
    """The text as rich shows it, without markup and control characters."""
    from rich.text import Text

    return Text(visible(value), style=style)


def money(cost_usd: float | None) -> str:
    """A cost as people read it; an unknown price is said to be unknown."""
    return "cost unknown" if cost_usd is None else f"${cost_usd:.4f}" if 0 < cost_usd < 0.1 else f"${cost_usd:.2f}"


class Indented:
    """Content further right. Unlike rich's `Padding` it puts no blanks at the ends of lines."""

    def __init__(self, content: RenderableType, columns: int) -> None:
        self._content = content
        self._columns = columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        inner = options.update(width=max(20, options.max_width - self._columns))
        for line in console.render_lines(self._content, inner, pad=False):
            yield Segment(" " * self._columns)
            yield from line
            yield Segment.line()
