"""Words what `import released`, `export released` and `replay` did, for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envscaler.cli.output import text_of
from envscaler.export import ReleasedExport
from envscaler.ingest import Counts, ImportedEnvironment, ImportReport
from envscaler.report.wording import count, decimal, visible
from envscaler.rollout import ReplayedEpisode, ReplayReport

_SHOWN = 10


def show_import(report: ImportReport, out: Console) -> None:
    """What was taken, what is wrong with it, and what was skipped."""
    for name, counts in (
        ("environment", report.environments),
        ("scenario", report.scenarios),
        ("episode", report.trajectories),
    ):
        if counts != Counts():
            out.print(_counted(name, counts))
    checked = [part for part in report.imported if part.findings is not None]
    if checked:
        clean = sum(not part.findings for part in checked)
        out.print(f"Checked {count(len(checked), 'environment')}: {clean} keep the contract in every point.")
    for part in report.imported:
        _show_environment(part, out)
    _show_skipped(report.skipped, out)
    if report.run is not None:
        out.print(Text.assemble(("Run: ", "bold"), visible(str(report.run))))
    if report.taken:
        out.print(Text(f"Look at it: envscaler show {visible(str(report.library))}", style="dim"))
    else:
        out.print(Text("Nothing was imported.", style="yellow"))


def show_released_export(report: ReleasedExport, out: Console) -> None:
    """What was written where."""
    out.print(f"{count(report.environments, 'environment')}, {count(report.scenarios, 'scenario')}")
    for file, episodes in report.trajectories.items():
        out.print(text_of(f"{count(episodes, 'episode')} in {file}"))
    _show_skipped(report.left_out, out)
    out.print(Text.assemble(("Folder: ", "bold"), visible(str(report.out))))


def show_replay(report: ReplayReport, out: Console) -> None:
    """The counts, a line an episode, and the evidence for what differs."""
    whole = report.summary
    ids = whole.observations_equal_up_to_ids - whole.observations_equal
    out.print(
        f"{count(whole.episodes, 'episode')} played again: {whole.observations_equal:,} of "
        f"{count(whole.observations, 'observation')} equal, {ids:,} more up to created ids and clock values, "
        f"{whole.observations - whole.observations_equal_up_to_ids:,} different"
    )
    out.print(
        f"Rewards: {whole.reward_equal:,} equal, {whole.reward_explained:,} explained, "
        f"{whole.reward_unexplained:,} unexplained"
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("task", overflow="fold", style="cyan")
    table.add_column("model")
    for name in ("observations", "recorded", "authors' rule", "fraction", "gained"):
        table.add_column(name, justify="right")
    table.add_column("")
    for episode in report.episodes[:60]:
        table.add_row(*_row(episode))
    out.print(table)
    if len(report.episodes) > 60:
        out.print(f"… {len(report.episodes) - 60} more; --json lists them all")
    told = [episode for episode in report.episodes if episode.explanation.evidence or episode.differences]
    for episode in told[:_SHOWN]:
        lines = (episode.explanation.evidence, *episode.differences[:3])
        for line in dict.fromkeys(line for line in lines if line):
            out.print(text_of(f"{episode.task_id}: {line}", "yellow"))
    if len(told) > _SHOWN:
        out.print(f"… {len(told) - _SHOWN} more episodes with something to tell; --json lists them all")
    _show_skipped(report.skipped, out)


def _row(episode: ReplayedEpisode) -> tuple[Text, ...]:
    mark = {
        True: Text("equal", "green"),
        False: Text(episode.explanation.kind or "unexplained", "yellow" if episode.explanation.kind else "red"),
    }[episode.reward_equal]
    return (
        text_of(episode.task_id),
        text_of(episode.model or "–"),
        Text(f"{episode.observations_equal_up_to_ids}/{episode.observations}"),
        Text("–" if episode.reward_recorded is None else f"{episode.reward_recorded:.4f}"),
        Text("–" if episode.reward_authors_rule is None else f"{episode.reward_authors_rule:.4f}"),
        Text("–" if episode.fraction is None else f"{episode.fraction:.4f}"),
        Text(decimal(episode.gained)),
        mark,
    )


def _counted(name: str, counts: Counts) -> str:
    parts = [f"{number:,} {word}" for word, number in counts.model_dump().items() if number]
    return f"{name}s: {', '.join(parts)}"


def _show_environment(part: ImportedEnvironment, out: Console) -> None:
    schema = [finding for finding in part.findings or () if finding.oracle == "schema"]
    if part.broken or part.notes or schema:
        where = f" (on {part.checked_on})" if part.checked_on else " (on an empty state)" if part.findings else ""
        out.print(text_of(f"{part.env_id}{where}", "cyan"))
    for finding in part.broken:
        out.print(text_of(f"    {finding.oracle}: {finding.detail}", "red"))
    for finding in schema[:_SHOWN]:
        out.print(text_of(f"    published schema: {finding.detail}", "yellow"))
    if len(schema) > _SHOWN:
        out.print(f"    … {len(schema) - _SHOWN} more; --json lists them all")
    for note in part.notes:
        out.print(text_of(f"    {note}", "yellow"))


def _show_skipped(skipped: tuple[str, ...], out: Console) -> None:
    for sentence in skipped[:_SHOWN]:
        out.print(text_of(f"Skipped: {sentence}", "yellow"))
    if len(skipped) > _SHOWN:
        out.print(f"… {len(skipped) - _SHOWN} more; --json lists them all")
