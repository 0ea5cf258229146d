"""Words what `rollout` did, for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envscaler.cli.output import text_of
from envscaler.cli.spending import show_spent
from envscaler.report.wording import count, decimal, percent, visible
from envscaler.rollout import RolloutReport
from envscaler.rollout.report import told


def show_rollout(report: RolloutReport, out: Console) -> None:
    """Scores, stop reasons, what was skipped, and where the episodes are."""
    total = report.scores
    asked = report.played + report.resumed
    line = f"{count(report.played, 'episode')} played now"
    if report.resumed:
        line += f", {report.resumed:,} there before"
    out.print(line)
    if report.record.note is not None:
        out.print(text_of(report.record.note, "yellow"))
    if total.episodes > asked:
        samples = f"the scores below are of all {total.episodes:,} in the run"
        out.print(Text(f"{count(asked, 'episode')} asked for now; {samples}", style="yellow"))
    if total.episodes:
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("solved", justify="right")
        for mode in total.rewards:
            table.add_column(f"reward {mode}", justify="right")
        table.add_column("steps", justify="right")
        table.add_row(
            percent(total.solved_rate),
            *(decimal(mean.value) for mean in total.rewards.values()),
            "–" if total.mean_steps is None else f"{total.mean_steps:.1f}",
        )
        out.print(table)
        out.print("Ended: " + ", ".join(f"{stop} {number:,}" for stop, number in total.stops.items()))
    if report.unfinished:
        out.print(
            Text(
                f"{count(report.unfinished, 'episode')} cut short by the machinery, left out of every mean; "
                "the same command plays them again",
                style="yellow",
            )
        )
    for sentence in told(report.record.skipped):
        out.print(text_of(f"Skipped {sentence}", "yellow"))
    if report.record.spent.calls:
        show_spent(report.record.spent, report.record.faults, out)
    out.print(Text.assemble(("Run: ", "bold"), visible(str(report.run))))
    if total.episodes:
        out.print(Text(f"Look at an episode: envscaler show {visible(str(report.run))} 0", style="dim"))
