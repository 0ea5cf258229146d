"""`envscaler run merge`: one run of several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report

if TYPE_CHECKING:
    from rich.console import Console

    from envscaler.rollout.merging import MergeReport


def register(run_app: typer.Typer) -> None:
    """Add the command to the tree."""

    @command(run_app, "merge", panel="Runs")
    def merge(
        runs: Annotated[
            list[str], typer.Argument(metavar="RUN…", help="Folders of runs of the same agent and settings.")
        ],
        out: Annotated[Path, typer.Option("--out", "-o", metavar="RUN", help="Folder of the new run.")],
        renumber: Annotated[
            bool,
            typer.Option(
                "--renumber", help="Keep equal samples of different runs as different ones, and count samples anew."
            ),
        ] = False,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Write one run with the episodes of several. Of an episode that two of them have, the first one counts."""
        from envscaler.cli.places import locate_run
        from envscaler.rollout.merging import merge_runs

        report = merge_runs([locate_run(run) for run in runs], out, renumber=renumber)
        show_report(report, output, _show)
        return EXIT_OK if report.scores.episodes else EXIT_NO_RESULT


def _show(report: MergeReport, out: Console) -> None:
    from rich.text import Text

    from envscaler.report.wording import count, visible

    for run, number in report.taken.items():
        out.print(Text(f"{count(number, 'episode')} of {visible(run)}"))
    for number, why in (
        (report.doubled, "another one of the same sample counts"),
        (report.other_versions, "another version of the environment or the scenario was played"),
        (report.unfinished, "the machinery had cut them short"),
    ):
        if number:
            out.print(Text(f"{count(number, 'episode')} left out: {why}", style="yellow"))
    out.print(Text.assemble(("Run: ", "bold"), visible(str(report.run))))
