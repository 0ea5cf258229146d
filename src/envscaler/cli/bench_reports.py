"""Words benchmarks, their installations and their reports for a terminal, and writes report files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envscaler.bench.catalogue import HELD_OUT, Benchmark
from envscaler.bench.comparison import BenchComparison
from envscaler.bench.installation import Installation, Installed, worker_digest
from envscaler.bench.report import BenchReport, bench_report
from envscaler.bench.tasks import BenchTask
from envscaler.cli.output import text_of
from envscaler.cli.score_tables import show_comparison
from envscaler.cli.spending import show_spent
from envscaler.record import Record
from envscaler.report import bench as pages
from envscaler.report.wording import count, visible
from envscaler.rollout import RolloutReport
from envscaler.rollout.settings import Folder
from envscaler.store import begins_with, json_text, require_replaceable, write_atomic
from envscaler.store.atomic import versioned


class PartSummary(Record):
    """One part of a benchmark as it was found."""

    tasks: int
    passing: int
    """Tasks whose recorded solution passes."""
    raised: int
    """Tasks in whose recorded solution a call raises."""
    failed: int
    """Tasks in whose recorded solution a call says that it failed."""
    noop: int
    """Tasks in which doing nothing passes."""


class InstallationSummary(Record):
    """What was installed."""

    benchmark: str
    title: str
    folder: Folder
    packages: tuple[str, ...]
    data: Folder | None = None
    parts: dict[str, PartSummary]
    faulty: int
    """Tasks in whose recorded solution some call raises or fails."""


class Listed(Record):
    """One benchmark."""

    name: str
    title: str
    packages: tuple[str, ...]
    installed: bool
    stale: bool = False
    """Installed by another version of this package."""
    tasks: dict[str, int] = {}
    data: Folder | None = None


class Listing(Record):
    """All benchmarks."""

    folder: Folder
    benchmarks: tuple[Listed, ...]


def listed(benchmark: Benchmark, installed: Installed | None) -> Listed:
    """One benchmark with what is installed of it."""
    return Listed(
        name=benchmark.name,
        title=benchmark.title,
        packages=benchmark.packages,
        installed=installed is not None,
        stale=installed is not None
        and (installed.packages, installed.worker) != (benchmark.packages, worker_digest(benchmark)),
        tasks={split: installed.count(split) for split in benchmark.splits} if installed is not None else {},
        data=installed.data if installed is not None else None,
    )


def installation_summary(made: Installation) -> InstallationSummary:
    """What an installation was found to hold."""
    parts = {}
    for named in dict.fromkeys(map(_part_of, made.installed.tasks)):
        own = [made.installed.recorded[task.id] for task in made.installed.tasks if _part_of(task) == named]
        parts[named] = PartSummary(
            tasks=len(own),
            passing=sum(one.passes for one in own),
            raised=sum(one.raised > 0 for one in own),
            failed=sum(one.failed > 0 for one in own),
            noop=sum(one.noop for one in own),
        )
    return InstallationSummary(
        benchmark=made.benchmark.name,
        title=made.benchmark.title,
        folder=made.folder,
        packages=made.benchmark.packages,
        data=made.installed.data,
        parts=parts,
        faulty=sum(bool(one.raised or one.failed) for one in made.installed.recorded.values()),
    )


def _part_of(task: BenchTask) -> str:
    """The part of a task, with the options that it is played with alone."""
    return " ".join((task.split, *task.only.values()))


def show_installation(summary: InstallationSummary, out: Console) -> None:
    """Tasks, recorded solutions and floors of each part."""
    table = _table(
        "part", "tasks", "recorded solutions that pass", "with calls that raise", "that fail", "doing nothing"
    )
    for split, part in summary.parts.items():
        cells = (part.tasks, part.passing, part.raised, part.failed, part.noop)
        table.add_row(text_of(split, "cyan"), *(f"{number:,}" for number in cells))
    out.print(table)
    if summary.faulty:
        out.print(
            text_of(
                f"In the recorded solutions of {count(summary.faulty, 'task')} calls raise or fail, which the checker "
                "does not tell: the tasks may have been made for another version of the benchmark's code.",
                "yellow",
            )
        )
    out.print(text_of(f"Installed in {visible(str(summary.folder))}: {', '.join(summary.packages)}"))
    out.print(text_of(f"Play it: envscaler bench run {summary.benchmark} --model NAME --base-url URL", "dim"))


def show_listing(listing: Listing, out: Console) -> None:
    """One line for each benchmark."""
    table = _table("benchmark", "tasks", "packages", "")
    for one in listing.benchmarks:
        state = (
            "by another version: install it again" if one.stale else "installed" if one.installed else "not installed"
        )
        style = "yellow" if one.stale else "green" if one.installed else "dim"
        tasks = f"{sum(one.tasks.values()):,}" if one.installed else "–"
        table.add_row(text_of(one.name, "cyan"), tasks, ", ".join(one.packages), text_of(state, style))
    out.print(table)
    for one in listing.benchmarks:
        out.print(text_of(f"{one.name}: {one.title}" + (f", tasks of {one.data}" if one.data else "")))
    out.print(text_of(f"{HELD_OUT.name}: those of a library, with nothing to install; bench run --library names it"))
    out.print(text_of(f"They lie in {visible(str(listing.folder))}; ENVSCALER_BENCH names another folder.", "dim"))


def show_run(report: RolloutReport, out: Console) -> None:
    """What was played, its scores and how far they can be believed, and where the episodes are."""
    line = f"{count(report.played, 'episode')} played now"
    out.print(line + (f", {report.resumed:,} there before" if report.resumed else ""))
    if report.scores.episodes:
        _print_tables(islice(pages.tables_of(bench_report([report.run])), 2), out)
    if report.unfinished:
        cut = f"{count(report.unfinished, 'episode')} cut short by the machinery, in no score"
        out.print(Text(f"{cut}; the same command plays them again", style="yellow"))
    if report.record.spent.calls:
        show_spent(report.record.spent, report.record.faults, out)
    out.print(Text.assemble(("Run: ", "bold"), visible(str(report.run))))
    out.print(Text(f"Report on it: envscaler bench report {visible(str(report.run))} --out DIR", style="dim"))


def print_report(report: BenchReport, out: Console, folder: Path | None) -> None:
    """The tables of a report."""
    _print_tables(pages.tables_of(report), out)
    if folder is not None:
        out.print(Text.assemble(("Written: ", "bold"), f"report.json, report.md and report.html in {folder}"))


def write_report(report: BenchReport, folder: Path) -> None:
    """Write a report in all forms.

    Raises:
        StoreError: if something that is no report stands in the way.
    """
    texts = {"report.json": json_text(versioned(report)), "report.md": pages.markdown(report)}
    texts["report.html"] = pages.page(report)
    marks = {"report.json": '"runs"', "report.md": "# Benchmarks", "report.html": "<title>Benchmarks</title>"}
    for name, mark in marks.items():
        require_replaceable(folder / name, partial(begins_with, mark=mark))
    for name, text in texts.items():
        write_atomic(folder / name, text)


def show_bench_comparison(told: BenchComparison, folders: Sequence[Path], out: Console) -> None:
    """Difference, interval and p, and how the runs were played differently."""
    if told.differences is not None:
        out.print(text_of(f"Not played under the same settings: {told.differences}", "yellow"))
    show_comparison(told.comparison, folders, out)


def _print_tables(tables: Iterable[pages.Table], out: Console) -> None:
    for told in tables:
        out.print(text_of(told.title, "bold"))
        table = _table(*told.head)
        for row in told.rows:
            table.add_row(*(text_of(cell, "dim" if row[0].startswith("  ") else "") for cell in row))
        out.print(table)
        for note in told.notes:
            out.print(text_of(note, "dim"))
        out.print()


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", overflow="fold")
    return table
