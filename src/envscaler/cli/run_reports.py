"""Words what `rollout` did, for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from envscaler.cli.output import text_of
from envscaler.cli.score_tables import add_floors, rewards_row, rewards_table, show_counts, show_passes, steps_text
from envscaler.cli.spending import show_spent
from envscaler.report.wording import count, visible
from envscaler.rollout import Floor, RolloutReport, floors_of, results_of_run
from envscaler.rollout.floors import AT_RESET, floor_runs
from envscaler.rollout.report import told
from envscaler.store import LibraryStore, RunStore


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
        table = rewards_table("", "steps")
        settings = report.record.settings
        who = report.record.models.get("agent", settings.agent)
        table.add_row(text_of(who, "cyan"), *rewards_row(total), steps_text(total))
        add_floors(table, _floors(report), total.scenarios)
        out.print(table)
        show_passes({who: total}, out)
        show_counts(total, out)
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


def _floors(report: RolloutReport) -> tuple[Floor, ...]:
    """The floors of the scenarios played. The episodes are read again only where another run may be a floor."""
    total, mode = report.scores, report.record.settings.mode
    if report.record.library is None:
        return ()
    library = LibraryStore.open(report.record.library)
    if next(floor_runs(library, mode=mode, own=report.run), None) is not None:
        return floors_of(results_of_run(RunStore(report.run)), library, mode=mode, own=report.run)
    idle = total.idle.get("fraction")
    if idle is None or idle.value is None:
        return ()
    return (Floor(agent="noop", source=AT_RESET, scenarios=idle.scenarios, rewards=total.idle),)
