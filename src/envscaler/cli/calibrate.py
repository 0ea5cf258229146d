"""`envscaler calibrate`: how often a model solves each scenario, and what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.build import AttemptsOption, SeedOption, SolverRunsOption
from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command
from envscaler.cli.isolation import IsolationName, IsolationOption
from envscaler.cli.model_flags import ModelFlags
from envscaler.cli.proof_flags import ProofFlags
from envscaler.cli.run import ModeName

if TYPE_CHECKING:
    from rich.console import Console

    from envscaler.cli.progress import Reporter
    from envscaler.models import Models
    from envscaler.roles.role import Prompts
    from envscaler.synth.calibration import CalibrateReport
    from envscaler.synth.curriculum import Curriculum
    from envscaler.synth.rewriting import Rewritten

_REWRITING = "Rewriting"


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""

    @command(app, "calibrate", panel="Use")
    def calibrate(
        library: Annotated[str, typer.Argument(metavar="LIBRARY[/ENV]", help="Whose scenarios are played.")],
        samples: Annotated[int, typer.Option("--samples", min=1, help="Episodes of each scenario.")] = 4,
        mode: Annotated[
            ModeName, typer.Option("--mode", help="The whole task at once, or a simulated user who tells it in parts.")
        ] = ModeName.NON_CONVERSATION,
        step_limit: Annotated[
            int | None,
            typer.Option("--step-limit", min=1, help="Turns of the agent at most; else 30, in conversation 40."),
        ] = None,
        band: Annotated[
            str, typer.Option("--band", metavar="LOW:HIGH", help="Pass rates of the scenarios that are to be learned.")
        ] = "0:1",
        extremes: Annotated[
            bool, typer.Option("--extremes", help="Also what was never or always solved, where the band reaches it.")
        ] = False,
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", metavar="FILE", help="Write the scenarios of the band as a curriculum (JSON)."),
        ] = None,
        held_out: Annotated[
            bool, typer.Option("--held-out", help="Take also environments that are held out into the curriculum.")
        ] = False,
        harden: Annotated[
            bool,
            typer.Option("--harden", help="Write what was always solved anew, harder.", rich_help_panel=_REWRITING),
        ] = False,
        soften: Annotated[
            bool, typer.Option("--soften", help="Write what was never solved anew, easier.", rich_help_panel=_REWRITING)
        ] = False,
        attempts: AttemptsOption = 3,
        solver_runs: SolverRunsOption = None,
        seed: SeedOption = 0,
        proof: ProofFlags = ProofFlags(),  # noqa: B008 - a frozen value
        isolation: IsolationOption = IsolationName.DEFAULT,
        models: ModelFlags = ModelFlags(),  # noqa: B008 - a frozen value
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Play each scenario several times and write its pass rate into it. Stopped, the same command resumes."""
        from envscaler.cli.asking import ask_models
        from envscaler.cli.output import console, emit_json
        from envscaler.cli.places import locate_library
        from envscaler.cli.show import warn
        from envscaler.env import open_library
        from envscaler.rollout import RolloutSettings
        from envscaler.store import begins_with, json_text, require_replaceable, write_atomic
        from envscaler.store.atomic import versioned
        from envscaler.synth.calibration import run_calibrate
        from envscaler.synth.curriculum import Band, draw_curriculum
        from envscaler.synth.rewriting import Rewriting, run_rewrite

        place = locate_library(library)
        assert place.library is not None
        wanted = Band.parse(band, extremes=extremes)
        if out is not None:
            require_replaceable(out, lambda file: begins_with(file, '"schema_version"'))
        settings = RolloutSettings(
            samples=samples,
            mode=mode.value,
            step_limit=step_limit,
            env_ids=(place.env_id,) if place.env_id is not None else None,
            isolation=isolation.value,
        )
        with open_library(place.library) as opened:

            async def work(
                chosen: Models, prompts: Prompts, progress: Reporter
            ) -> tuple[CalibrateReport, tuple[Rewritten, ...]]:
                calibrated = await run_calibrate(opened, settings, chosen, prompts, band=wanted, progress=progress)
                if not (harden or soften):
                    return calibrated, ()
                rewriting = Rewriting(
                    model=calibrated.model,
                    harden=harden,
                    soften=soften,
                    env_ids=settings.env_ids,
                    seed=seed,
                    attempts=attempts,
                    thresholds=proof.thresholds(),
                    solver_runs=solver_runs,
                    # Nobody has seen what the new states do to a program.
                    isolation="required" if isolation is IsolationName.REQUIRED else "default",
                )
                return calibrated, await run_rewrite(opened.store, rewriting, chosen, prompts, progress)

            report, rewritten = ask_models(models, place.library, work, quiet=output.quiet)
            warn(opened.problems)
            curriculum = draw_curriculum(opened.store, wanted, model=report.model, held_out=held_out)
        if out is not None:
            write_atomic(out, json_text(versioned(curriculum)))
        if output.json:
            emit_json(
                {
                    "report": report.model_dump(mode="json"),
                    "curriculum": curriculum.model_dump(mode="json"),
                    "rewritten": [one.model_dump(mode="json") for one in rewritten],
                }
            )
        else:
            show_calibration(report, curriculum, out, console())
            show_rewritten(rewritten, console())
        return EXIT_OK if report.calibrated else EXIT_NO_RESULT


def show_calibration(report: CalibrateReport, curriculum: Curriculum, written: Path | None, out: Console) -> None:
    """How many scenarios were solved how often, and how many are in the band."""
    from rich.table import Table
    from rich.text import Text

    from envscaler.cli.output import text_of
    from envscaler.report.wording import count, visible

    out.print(f"{count(report.played, 'episode')} played now, {count(report.calibrated, 'scenario')} calibrated")
    if report.note is not None:
        out.print(text_of(report.note, "yellow"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("solved")
    table.add_column("scenarios", justify="right")
    for share, number in report.solved.items():
        table.add_row(share, f"{number:,}")
    out.print(table)
    out.print(f"Never solved: {report.never:,}, always: {report.always:,}, in the band: {report.in_band:,}")
    for number, what in (
        (report.short, "with fewer judged episodes than asked for; the same command plays them again"),
        (report.unjudged, "of which no episode was judged"),
    ):
        if number:
            out.print(text_of(f"{count(number, 'scenario')} {what}", "yellow"))
    for sentence in report.skipped:
        out.print(text_of(f"Skipped {sentence}", "yellow"))
    out.print(Text.assemble(("Run: ", "bold"), visible(str(report.run))))
    if written is not None:
        lessons = count(len(curriculum.scenarios), "scenario")
        out.print(Text.assemble(("Curriculum: ", "bold"), visible(str(written)), f" ({lessons})"))


def show_rewritten(rewritten: Sequence[Rewritten], out: Console) -> None:
    """How many scenarios were written anew, and why others were not."""
    from envscaler.cli.output import text_of
    from envscaler.report.wording import count

    for direction in ("harder", "easier"):
        tried = [one for one in rewritten if one.direction == direction]
        if tried:
            there = sum(one.fault is None for one in tried)
            out.print(f"{count(len(tried), 'scenario')} to be written anew {direction}: {there:,} there, proved")
            for one in tried:
                if one.fault is not None:
                    out.print(text_of(f"    {one.fault}", "dim"))
    if any(one.fault is None for one in rewritten):
        out.print(text_of("The same command calibrates the new ones.", "dim"))
