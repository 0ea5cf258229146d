"""`envscaler prove` and `audit`: whether the rewards of a library can be trusted, found without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report
from envscaler.cli.isolation import MakingIsolationName, MakingIsolationOption
from envscaler.cli.proof_flags import PANEL, ProofFlags
from envscaler.errors import UsageError

WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, metavar="N", help="Processes; else as many as there are usable cores."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the tree."""

    @command(app, "prove", panel="Make")
    def prove(
        library: Annotated[str, typer.Argument(metavar="LIBRARY[/ENV[/SCENARIO]]", help="What to prove.")],
        proof: ProofFlags = ProofFlags(),  # noqa: B008 - a frozen value
        max_leaks: Annotated[
            int | None,
            typer.Option(
                "--max-leaks",
                min=0,
                help="Tool names and ids that a task may give away; else they are told and do not count.",
                rich_help_panel=PANEL,
            ),
        ] = None,
        force: Annotated[bool, typer.Option("--force", help="Prove again what has a valid proof.")] = False,
        workers: WorkersOption = None,
        isolation: MakingIsolationOption = MakingIsolationName.DEFAULT,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Try checks on no-op, solution, mutants, over-edits and variants; exit 1 when a scenario falls short."""
        import asyncio

        from envscaler.cli.places import locate, scenario_of
        from envscaler.cli.progress import reporter
        from envscaler.cli.trust_reports import show_prove
        from envscaler.env.library import open_library
        from envscaler.proof.run import run_prove

        place = locate(library)
        if place.library is None:
            raise UsageError(f"{library} is a run; give a library")
        scenario_id = None
        if place.scenario is not None and place.env_id is not None:
            with open_library(place.library) as opened:
                scenario_id = scenario_of(opened, place.env_id, place.scenario).id
        with reporter(quiet=output.quiet) as display:
            work = run_prove(
                place.library,
                env_id=place.env_id,
                scenario_id=scenario_id,
                thresholds=proof.thresholds(max_leaks),
                force=force,
                workers=workers,
                isolation=isolation.value,
                progress=display,
            )
            report = asyncio.run(work)
        show_report(report, output, show_prove)
        return EXIT_OK if report.accepted == len(report.scenarios) else EXIT_NO_RESULT

    @command(app, "audit", panel="Make")
    def audit(
        library: Annotated[str, typer.Argument(metavar="LIBRARY[/ENV]", help="What to audit, imported ones included.")],
        html: Annotated[
            Path | None, typer.Option("--html", metavar="FILE", help="Also write the findings as a page.")
        ] = None,
        fix: Annotated[
            Path | None,
            typer.Option(
                "--fix",
                metavar="DIR",
                help="Write a cleaned library: guards marked, broken checks removed, scenarios without a goal dropped.",
            ),
        ] = None,
        workers: WorkersOption = None,
        isolation: MakingIsolationOption = MakingIsolationName.DEFAULT,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Find what is wrong with environments, scenarios and checks, without a model. Stopped, it resumes."""
        import asyncio

        from envscaler.audit.fix import require_new, write_fixed
        from envscaler.audit.run import run_audit
        from envscaler.cli.places import locate_library
        from envscaler.cli.progress import reporter
        from envscaler.cli.trust_reports import show_audit, show_fixed

        place = locate_library(library)
        folder = place.library
        assert folder is not None
        if fix is not None and place.env_id is not None:
            raise UsageError("--fix writes a whole library; name the library and no environment of it")
        if fix is not None:
            require_new(folder, fix)
        with reporter(quiet=output.quiet) as display:
            work = run_audit(folder, env_id=place.env_id, workers=workers, isolation=isolation.value, progress=display)
            report = asyncio.run(work)
        if html is not None:
            from envscaler.report.audit_page import write_audit_page

            write_audit_page(report, html, title=folder.name)
        show_report(report, output, show_audit)
        if fix is not None:
            fixed = write_fixed(folder, fix, report)
            if not output.json:
                show_report(fixed, output, show_fixed)
        return EXIT_OK
