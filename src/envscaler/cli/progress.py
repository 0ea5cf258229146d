"""Progress of long commands on standard error: bars in a terminal, now and then a line elsewhere.

It implements `engine.Progress`. What counts as progress is decided by whoever advances it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from envscaler.report.wording import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_LINE_EVERY_S = 5.0


class Reporter:
    """A progress display that is entered and left; outside it stays silent."""

    def __init__(self) -> None:
        self.spending: Callable[[], str] | None = None
        """Says in a few words what was spent so far; set as soon as a meter exists."""

    def __enter__(self) -> Reporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def stage(self, name: str, total: int | None = None) -> None:
        """Announce a stage, or correct the number of its units."""

    def advance(self, stage: str, n: int = 1) -> None:
        """Count finished units."""

    def note(self, text: str) -> None:
        """Tell something that is worth a line of its own."""


class LineReporter(Reporter):
    """Plain lines for logs and pipes, at most one every few seconds, and one when a stage is complete."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._start = clock()
        self._done: dict[str, int] = {}
        self._total: dict[str, int | None] = {}
        self._last = self._start

    def stage(self, name: str, total: int | None = None) -> None:
        self._done.setdefault(name, 0)
        self._total[name] = total

    def advance(self, stage: str, n: int = 1) -> None:
        self._done[stage] = self._done.get(stage, 0) + n
        now = self._clock()
        if self._done[stage] == self._total.get(stage) or now - self._last >= _LINE_EVERY_S:
            self._last = now
            self._write(" · ".join(self._count(name) for name in self._done))

    def note(self, text: str) -> None:
        self._write(visible(text))

    def _count(self, name: str) -> str:
        total = self._total.get(name)
        return f"{name} {self._done[name]:,}" + (f"/{total:,}" if total is not None else "")

    def _write(self, text: str) -> None:
        spent = self.spending() if self.spending is not None else ""
        elapsed = int(self._clock() - self._start)
        try:
            print(f"[{elapsed // 60}:{elapsed % 60:02d}] {text}{' · ' + spent if spent else ''}", file=sys.stderr)
        except OSError:  # a reader that went away must not end the work
            return


class BarReporter(Reporter):
    """One bar a stage, with a line below for what was spent."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bars: Bars = Progress(
            TextColumn("{task.description:<12}", markup=False),
            BarColumn(bar_width=32),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[spent]}", markup=False, style="dim"),
            console=console,
            refresh_per_second=5,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Reporter:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def stage(self, name: str, total: int | None = None) -> None:
        if name not in self._tasks:
            for earlier in self._tasks.values():
                self._bars.update(earlier, spent="")
            self._tasks[name] = self._bars.add_task(visible(name), total=total, spent="")
        else:
            self._bars.update(self._tasks[name], total=total)

    def advance(self, stage: str, n: int = 1) -> None:
        if stage not in self._tasks:
            self.stage(stage)
        last = next(reversed(self._tasks.values()))
        self._bars.advance(self._tasks[stage], n)
        if self.spending is not None:
            self._bars.update(last, spent=self.spending())

    def note(self, text: str) -> None:
        self._bars.console.print(visible(text))


def reporter(*, quiet: bool) -> Reporter:
    """The display that suits standard error."""
    if quiet:
        return Reporter()
    if not sys.stderr.isatty():
        return LineReporter()
    from envscaler.cli.output import console

    return BarReporter(console(stderr=True))


def duration(seconds: float) -> str:
    """A span of time as people say it: `40 s`, `5 min`, `1 h 10 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
