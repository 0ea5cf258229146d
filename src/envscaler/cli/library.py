"""`envscaler library merge|filter|split`: libraries made from libraries, and what is held out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report

if TYPE_CHECKING:
    from rich.console import Console

    from envscaler.curate import FilterReport, MergeReport, SplitReport
    from envscaler.synth.curriculum import Curriculum

_OutOption = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the new library.")]


class LevelName(StrEnum):
    """How hard a scenario is."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


def register(library_app: typer.Typer) -> None:
    """Add the commands to the tree."""

    @command(library_app, "merge", panel="Library")
    def merge(
        libraries: Annotated[list[Path], typer.Argument(metavar="LIBRARY…", help="Two libraries or more.")],
        out: _OutOption,
        runs: Annotated[bool, typer.Option("--runs", help="Take their runs along.")] = False,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Make one library of several, every program and every scenario once. The same command resumes."""
        from envscaler.curate import merge_libraries

        report = merge_libraries(libraries, out, runs=runs)
        show_report(report, output, _show_merge)
        return EXIT_OK if report.environments else EXIT_NO_RESULT

    @command(library_app, "filter", panel="Library")
    def filter_(
        library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="What is chosen from.")],
        out: _OutOption,
        env: Annotated[
            list[str] | None,
            typer.Option("--env", metavar="ID", help="Environments, also as a pattern: hotel-*. Can be repeated."),
        ] = None,
        split: Annotated[
            list[str] | None, typer.Option("--split", metavar="NAME", help="Environments of a split.")
        ] = None,
        language: Annotated[
            list[str] | None, typer.Option("--language", metavar="CODE", help="Environments of a language: en, zh.")
        ] = None,
        graded: Annotated[
            list[str] | None,
            typer.Option(
                "--graded", metavar="GRADE", help="Environments whose audit shows it: determinism, floor_gap …"
            ),
        ] = None,
        accepted: Annotated[
            bool, typer.Option("--accepted", help="Environments that passed their assessment.")
        ] = False,
        difficulty: Annotated[
            list[LevelName] | None, typer.Option("--difficulty", help="Scenarios of a level. Can be repeated.")
        ] = None,
        proved: Annotated[
            bool, typer.Option("--proved", help="Scenarios with a valid proof that is good enough.")
        ] = False,
        band: Annotated[
            str | None,
            typer.Option("--band", metavar="LOW:HIGH", help="Scenarios whose calibrated pass rate lies there."),
        ] = None,
        extremes: Annotated[
            bool, typer.Option("--extremes", help="With --band: also what was never or always solved.")
        ] = False,
        curriculum: Annotated[
            Path | None, typer.Option("--curriculum", metavar="FILE", help="Scenarios that stand in a curriculum.")
        ] = None,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Make a library of what fits every condition given. The same command resumes."""
        from envscaler.curate import Selection, filter_library
        from envscaler.synth.curriculum import Band

        selection = Selection(
            env_ids=tuple(env or ()),
            splits=tuple(split or ()),
            languages=tuple(language or ()),
            grades=tuple(graded or ()),
            accepted=accepted,
            levels=tuple(level.value for level in difficulty or ()),
            proved=proved,
            band=Band.parse(band, extremes=extremes) if band is not None else None,
            curriculum=_curriculum(curriculum) if curriculum is not None else None,
        )
        report = filter_library(library, out, selection)
        show_report(report, output, show_filter)
        return EXIT_OK if report.environments else EXIT_NO_RESULT

    @command(library_app, "split", panel="Library")
    def split_(
        library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="Whose environments are split.")],
        ratio: Annotated[
            str, typer.Option("--ratio", metavar="NAME=SHARE,…", help="Splits with their shares.")
        ] = "train=0.9,test=0.1",
        seed: Annotated[int, typer.Option("--seed", help="Another seed draws other splits.")] = 0,
        redraw: Annotated[
            bool,
            typer.Option("--redraw", help="Draw all anew, though what was held out may then be trained on."),
        ] = False,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Divide environments into splits; only `train` is ever trained on. What has a split keeps it."""
        from envscaler.curate import parse_ratio, split_library

        report = split_library(library, parse_ratio(ratio), seed=seed, redraw=redraw)
        show_report(report, output, _show_split)
        return EXIT_OK


def _curriculum(path: Path) -> Curriculum:
    from envscaler.store import read_record
    from envscaler.synth.curriculum import Curriculum

    return read_record(path, Curriculum)


def _show_merge(report: MergeReport, out: Console) -> None:
    from envscaler.cli.output import text_of
    from envscaler.report.wording import count

    out.print(f"{count(report.environments, 'environment')} with {count(report.scenarios, 'scenario')}")
    for number, what in ((report.same_environments, "environment"), (report.same_scenarios, "scenario")):
        if number:
            out.print(text_of(f"    {count(number, what)} there already", "dim"))
    for old, new in report.renamed.items():
        out.print(text_of(f"    {old} is {new} now: its id was taken", "yellow"))
    if report.renamed_scenarios:
        out.print(text_of(f"    {count(report.renamed_scenarios, 'scenario')} renamed: ids were taken", "yellow"))
    for env_id in report.held_out:
        out.print(text_of(f"    {env_id} is held out: one of the libraries trains on it, another does not", "yellow"))
    if report.runs:
        out.print(f"{count(report.runs, 'run')} with {count(report.episodes, 'episode')}")
    _show_library(report.library, out)


def show_filter(report: FilterReport, out: Console) -> None:
    """What was taken over into a new library, and why the rest was not."""
    from envscaler.cli.output import text_of
    from envscaler.report.wording import count

    out.print(f"{count(report.environments, 'environment')} with {count(report.scenarios, 'scenario')}")
    for what, dropped in (("environment", report.dropped_environments), ("scenario", report.dropped_scenarios)):
        for reason, number in dropped.items():
            out.print(text_of(f"    left out: {count(number, what)}, {reason}", "dim"))
    if report.environments:
        _show_library(report.library, out)


def _show_split(report: SplitReport, out: Console) -> None:
    from envscaler.cli.output import text_of
    from envscaler.report.wording import count, shortened

    for name, members in report.splits.items():
        out.print(text_of(f"{name}: {count(len(members), 'environment')}"))
        out.print(text_of(f"    {shortened(', '.join(members), 200)}", "dim"))
    if report.kept:
        out.print(text_of(f"{count(report.kept, 'environment')} stay where they were, {report.added:,} added", "dim"))


def _show_library(library: Path, out: Console) -> None:
    from rich.text import Text

    from envscaler.report.wording import visible

    out.print(Text.assemble(("Library: ", "bold"), visible(str(library))))
