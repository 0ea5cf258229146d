"""`envscaler import released`, `export released`, `replay`: the published data, in, out and played again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, complain, show_report
from envscaler.cli.isolation import (
    IsolationName,
    IsolationOption,
    MakingIsolationName,
    MakingIsolationOption,
)
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from envscaler.env import Library
    from envscaler.sandbox import Isolation


def register(app: typer.Typer, import_app: typer.Typer, export_app: typer.Typer) -> None:
    """Add the commands to the tree."""

    @command(import_app, "released", panel="Formats")
    def import_released(
        library: Annotated[
            Path, typer.Option("--library", "-l", metavar="DIR", help="Folder of the library; made if missing.")
        ],
        environments: Annotated[
            Path | None, typer.Option("--environments", metavar="FILE", help="Published environments.")
        ] = None,
        scenarios: Annotated[
            Path | None, typer.Option("--scenarios", metavar="FILE", help="Published scenarios.")
        ] = None,
        trajectories: Annotated[
            Path | None, typer.Option("--trajectories", metavar="FILE", help="Published episodes; they become a run.")
        ] = None,
        check: Annotated[
            bool, typer.Option("--check/--no-check", help="Check every environment against the contract.")
        ] = True,
        replace: Annotated[
            bool, typer.Option("--replace", help="Replace what the library has differently; else it stays.")
        ] = False,
        isolation: MakingIsolationOption = MakingIsolationName.DEFAULT,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Import the files that the paper's authors published. Stopped at any moment, the same command resumes."""
        import asyncio

        from envscaler.cli.progress import reporter
        from envscaler.cli.released_reports import show_import
        from envscaler.ingest import ReleasedFiles
        from envscaler.ingest import import_released as read_files

        files = ReleasedFiles(environments, scenarios, trajectories)
        with reporter(quiet=output.quiet) as display:
            work = read_files(files, library, check=check, replace=replace, isolation=isolation.value, progress=display)
            report = asyncio.run(work)
        show_report(report, output, show_import)
        return EXIT_OK if report.taken else EXIT_NO_RESULT

    @command(export_app, "released", panel="Formats")
    def export_released(
        library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="What is written.")],
        out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the files.")],
        run: Annotated[
            list[Path] | None,
            typer.Option("--run", metavar="RUN", help="Also the episodes of this run; can be given several times."),
        ] = None,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Write environments, scenarios and imported episodes in the format of the paper's authors."""
        from envscaler.cli.released_reports import show_released_export
        from envscaler.export import export_released as write_files

        report = write_files(library, out, run or ())
        for lack in report.partial:
            complain(f"warning: {lack}")
        show_report(report, output, show_released_export)
        return EXIT_OK if report.environments else EXIT_NO_RESULT

    @command(app, "replay", panel="Use")
    def replay(
        source: Annotated[Path, typer.Argument(metavar="FILE|RUN", help="Published episodes, or the folder of a run.")],
        library: Annotated[
            Path | None,
            typer.Option("--library", "-l", metavar="DIR", help="Has the programs; of a run also found by itself."),
        ] = None,
        isolation: IsolationOption = IsolationName.DEFAULT,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Play recorded calls again; exit 1 when an observation or a reward differs without an explanation."""
        import asyncio

        from envscaler.cli.progress import reporter
        from envscaler.cli.released_reports import show_replay
        from envscaler.cli.show import warn
        from envscaler.rollout import run_replay

        source = _played(source, library)
        with _library(source, library, isolation.value) as opened, reporter(quiet=output.quiet) as display:
            report = asyncio.run(run_replay(opened, source, display))
        warn(opened.problems)
        show_report(report, output, show_replay)
        return EXIT_OK if report.agrees else EXIT_NO_RESULT


def _played(source: Path, library: Path | None) -> Path:
    """The file or the folder of a run that was named: by its path, or by the id of a run in the library.

    Raises:
        UsageError: if there is neither.
    """
    from envscaler.cli.places import run_folder

    source = run_folder(source)
    if source.exists():
        return source
    if library is None:
        raise UsageError(
            f"{source}: there is neither a file nor a run there; a run can be named by its id with --library"
        )
    run = library / "rollouts" / source
    if run.is_dir():
        return run
    raise UsageError(f"{source}: there is neither such a file nor such a run; looked at {source} and {run}")


def _library(source: Path, named: Path | None, isolation: Isolation) -> Library:
    from envscaler.cli.places import library_of_run
    from envscaler.env import open_library
    from envscaler.store import RunStore

    if named is not None:
        return open_library(named, isolation=isolation)
    if not source.is_dir():
        raise UsageError(f"{source} is a file of episodes; name the library that has their programs with --library")
    library = library_of_run(RunStore.open(source), isolation)
    if library is None:
        raise UsageError(f"the library that {source} played is not at hand; name it with --library")
    return library
