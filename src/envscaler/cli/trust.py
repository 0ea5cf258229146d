"""`envscaler prove` and `audit`: whether the rewards of a library can be trusted.

No model is asked, unless `audit --solve` names one for what came without a solution.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report
from envscaler.cli.isolation import MakingIsolationName, MakingIsolationOption
from envscaler.cli.model_flags import EndpointFlags, ModelFlags
from envscaler.cli.proof_flags import PANEL, ProofFlags
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from envscaler.cli.progress import Reporter
    from envscaler.evidence import Solving
    from envscaler.models import Models
    from envscaler.roles.role import Prompts

WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, metavar="N", help="Processes; else as many as there are usable cores."),
]
_SOLVING = "Solutions"


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
        solve: Annotated[
            str | None,
            typer.Option(
                "--solve",
                metavar="MODEL",
                help="First let this model play the scenarios that came without a solution.",
                rich_help_panel=_SOLVING,
            ),
        ] = None,
        solve_samples: Annotated[
            int,
            typer.Option(
                "--solve-samples",
                min=1,
                metavar="N",
                help="Episodes of such a scenario at most, until one solves it.",
                rich_help_panel=_SOLVING,
            ),
        ] = 1,
        workers: WorkersOption = None,
        isolation: MakingIsolationOption = MakingIsolationName.DEFAULT,
        endpoint: EndpointFlags = EndpointFlags(),  # noqa: B008 - a frozen value
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Find what is wrong with environments, scenarios and checks; no model is needed. Stopped, it resumes."""
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
        if html is not None:
            from envscaler.report.page import require_page_place

            require_page_place(html)
        solving: Solving | None = None
        if solve is not None:
            from envscaler.audit.solving import solve_missing
            from envscaler.cli.asking import ask_models

            async def solved(models: Models, prompts: Prompts, progress: Reporter) -> Solving:
                return await solve_missing(
                    folder,
                    models,
                    env_id=place.env_id,
                    samples=solve_samples,
                    isolation=isolation.value,
                    progress=progress,
                )

            # Named for the agents' family as well: a settings file may name another one for it.
            flags = ModelFlags(model=solve, role_model=[f"agent={solve}"], **_given(endpoint))
            solving = ask_models(flags, folder, solved, quiet=output.quiet)
        elif unused := [*_given(endpoint), *(["solve_samples"] if solve_samples > 1 else [])]:
            raise UsageError(f"--{unused[0].replace('_', '-')} says how to solve; name a model with --solve MODEL")
        with reporter(quiet=output.quiet) as display:
            work = run_audit(folder, env_id=place.env_id, workers=workers, isolation=isolation.value, progress=display)
            report = asyncio.run(work).model_copy(update={"solving": solving})
        if html is not None:
            from envscaler.report.audit_page import write_audit_page

            write_audit_page(report, html, title=folder.name)
        show_report(report, output, show_audit)
        if fix is not None:
            fixed = write_fixed(folder, fix, report)
            if not output.json:
                show_report(fixed, output, show_fixed)
        return EXIT_OK


def _given(flags: EndpointFlags) -> dict[str, Any]:
    """The flags that were given, by name."""
    return {name: value for name, value in dataclasses.asdict(flags).items() if value is not None}
