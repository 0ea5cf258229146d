"""Words what `export sft` and `export rl` did, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envscaler.cli.output import text_of
from envscaler.export import ExportReport, RlReport
from envscaler.report.wording import count, visible


def show_export(report: ExportReport, out: Console) -> None:
    """What was kept, and why the rest was not."""
    environments = count(report.environments, "environment")
    dropped = sum(report.dropped.values())
    rows = count(report.kept, "row")
    episodes = "" if report.episodes == report.kept else f" of {count(report.episodes, 'episode')}"
    out.print(f"{rows}{episodes} from {environments}, {dropped:,} dropped")
    for reason, number in report.dropped.items():
        out.print(text_of(f"    {number:,} {reason}", "dim"))
    if report.rows_too_long:
        out.print(text_of(f"    {count(report.rows_too_long, 'row')} too long, of episodes that were kept", "dim"))
    for note in report.notes:
        out.print(text_of(note, "yellow"))
    for path in report.files or (report.out,):
        out.print(Text.assemble(("File: ", "bold"), visible(str(path))))


def show_rl_export(report: RlReport, out: Console) -> None:
    """What was written, and why the rest was not."""
    dropped = sum(report.dropped.values())
    out.print(f"{count(report.kept, 'row')} from {count(report.environments, 'environment')}, {dropped:,} dropped")
    for reason, number in report.dropped.items():
        out.print(text_of(f"    {number:,} {reason}", "dim"))
    for note in report.notes:
        out.print(text_of(note, "yellow"))
    for path in report.files:
        out.print(Text.assemble(("File: ", "bold"), visible(str(path))))


def show_formats(summaries: Mapping[str, str], out: Console) -> None:
    """Each format with its sentence."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, summary in summaries.items():
        table.add_row(name, text_of(summary))
    out.print(table)
