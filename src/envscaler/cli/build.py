"""`envscaler synth`, `assess` and `scenarios`: the commands that make and extend a library."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report
from envscaler.cli.isolation import MakingIsolationName, MakingIsolationOption
from envscaler.cli.model_flags import ModelFlags
from envscaler.cli.proof_flags import PANEL, ProofFlags
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from envscaler.cli.progress import Reporter
    from envscaler.models import Models
    from envscaler.roles.role import Prompts
    from envscaler.synth import AssessReport, ScenariosReport, SynthReport


class Until(StrEnum):
    """Stages of a synthesis."""

    DISCOVER = "discover"
    DESIGN = "design"
    PROGRAM = "program"
    ASSESS = "assess"
    SCENARIOS = "scenarios"


class By(StrEnum):
    """Rates that can be held against the threshold."""

    PASS = "pass"
    NOT_FAIL = "not_fail"


class Judge(StrEnum):
    """Test calls that the checking agent is asked about."""

    AUTO = "auto"
    ALL = "all"


class ScaffoldName(StrEnum):
    """How environments are asked for."""

    AUTO = "auto"
    WHOLE = "whole"
    STAGED = "staged"


class Language(StrEnum):
    """In which language environments speak."""

    KEEP = "keep"
    EN = "en"


_MOST = 10_000
"""Scenarios of one environment at most: a slip of the finger is not to begin a work of years."""
_QUALITY = "Quality"
_DISCOVERY = "Discovery"

RoundsOption = Annotated[
    int, typer.Option("--rounds", min=1, help="Test calls of an assessment at most.", rich_help_panel=_QUALITY)
]
AllRoundsOption = Annotated[
    bool,
    typer.Option(
        "--all-rounds", help="Make all test calls, also when the verdict is settled before.", rich_help_panel=_QUALITY
    ),
]
JudgeOption = Annotated[
    Judge,
    typer.Option(
        "--judge",
        help="Test calls that the checking agent is asked about: those that no oracle settles, or all.",
        rich_help_panel=_QUALITY,
    ),
]
ThresholdOption = Annotated[
    float,
    typer.Option(
        "--threshold", min=0.0, max=1.0, help="Rate from which an environment is kept.", rich_help_panel=_QUALITY
    ),
]
ByOption = Annotated[
    By,
    typer.Option(
        "--by",
        help="Rate compared with the threshold: calls judged pass, or all but those judged fail.",
        rich_help_panel=_QUALITY,
    ),
]
AttemptsOption = Annotated[
    int,
    typer.Option("--attempts", min=1, help="Questions at most until a reply can be used.", rich_help_panel=_QUALITY),
]
KeepUnprovedOption = Annotated[
    bool,
    typer.Option(
        "--keep-unproved", help="Keep scenarios that do not reach these; else they are dropped.", rich_help_panel=PANEL
    ),
]
SolverRunsOption = Annotated[
    int | None,
    typer.Option(
        "--solver-runs",
        min=0,
        metavar="N",
        help="How often the builder's model plays each task, to find solutions and false positives; else 2, and 0 for "
        "the offline model.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
ChecksPerCallOption = Annotated[
    int,
    typer.Option(
        "--checks-per-call",
        min=1,
        metavar="N",
        help="Check functions asked for at once; 1 for each in a call of its own.",
        rich_help_panel=_QUALITY,
    ),
]
ScaffoldOption = Annotated[
    ScaffoldName,
    typer.Option(
        "--scaffold",
        help="Ask for whole plans and programs, or in small questions around parts made by code; auto: whole, unless "
        "the model's first replies show that it cannot.",
        rich_help_panel=_QUALITY,
    ),
]
MethodsPerCallOption = Annotated[
    int,
    typer.Option(
        "--methods-per-call",
        min=1,
        metavar="N",
        help="Methods asked for at once; 1 for each in a call of its own.",
        rich_help_panel=_QUALITY,
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of everything that is drawn.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the tree."""
    panel = "Make"

    @command(app, "synth", panel=panel)
    def synth(
        library: Annotated[Path, typer.Option("--library", "-l", metavar="DIR", help="Library to make or extend.")],
        tasks: Annotated[
            Path | None,
            typer.Argument(metavar="TASKS", help="Tasks as JSONL, JSON or text, one a record.", show_default=False),
        ] = None,
        descriptions: Annotated[
            Path | None,
            typer.Option(
                "--descriptions",
                metavar="FILE",
                help="Begin from environment descriptions instead of tasks.",
                rich_help_panel=_DISCOVERY,
            ),
        ] = None,
        limit: Annotated[int | None, typer.Option("--limit", min=1, help="Read so many tasks at most.")] = None,
        target: Annotated[
            int | None,
            typer.Option(
                "--target",
                min=1,
                metavar="N",
                help="Take tasks in an order drawn by --seed until N environments are accepted.",
                show_default=False,
            ),
        ] = None,
        environments: Annotated[
            int | None,
            typer.Option(
                "--environments",
                min=1,
                metavar="N",
                help="Take tasks in an order drawn by --seed until N environments are begun, whatever becomes of them.",
                show_default=False,
            ),
        ] = None,
        until: Annotated[Until, typer.Option("--until", help="Last stage to carry out.")] = Until.SCENARIOS,
        scenarios: Annotated[
            int, typer.Option("--scenarios", min=0, max=_MOST, help="Scenarios for each environment.")
        ] = 3,
        seed: SeedOption = 0,
        rounds: RoundsOption = 100,
        threshold: ThresholdOption = 0.85,
        by: ByOption = By.PASS,
        all_rounds: AllRoundsOption = False,
        judge: JudgeOption = Judge.AUTO,
        repairs: Annotated[
            int,
            typer.Option(
                "--repairs",
                min=0,
                metavar="N",
                help="Versions of a method asked for at most when test calls of it fail; 0: it stays as it is.",
                rich_help_panel=_QUALITY,
            ),
        ] = 2,
        attempts: AttemptsOption = 3,
        proof: ProofFlags = ProofFlags(),  # noqa: B008 - a frozen value
        keep_unproved: KeepUnprovedOption = False,
        solver_runs: SolverRunsOption = None,
        scaffold: ScaffoldOption = ScaffoldName.AUTO,
        methods_per_call: MethodsPerCallOption = 6,
        checks_per_call: ChecksPerCallOption = 8,
        language: Annotated[
            Language,
            typer.Option(
                "--language", help="The language of the task, or English everywhere.", rich_help_panel=_DISCOVERY
            ),
        ] = Language.KEEP,
        min_usefulness: Annotated[
            int,
            typer.Option(
                "--min-usefulness",
                min=1,
                max=10,
                help="How useful, as the model judges it, an environment has to be.",
                rich_help_panel=_DISCOVERY,
            ),
        ] = 7,
        min_modelability: Annotated[
            int,
            typer.Option(
                "--min-modelability",
                min=1,
                max=10,
                help="How well a class can stand for it, as the model judges.",
                rich_help_panel=_DISCOVERY,
            ),
        ] = 7,
        similarity: Annotated[
            float,
            typer.Option(
                "--similarity",
                min=0.0,
                max=1.0,
                help="Cosine from which two descriptions are the same environment.",
                rich_help_panel=_DISCOVERY,
            ),
        ] = 0.8,
        clusters: Annotated[
            int | None,
            typer.Option(
                "--clusters",
                min=1,
                metavar="K",
                help="Keep K descriptions by k-means, as the paper does, instead of de-duplicating in order.",
                rich_help_panel=_DISCOVERY,
            ),
        ] = None,
        keep_equal_structures: Annotated[
            bool,
            typer.Option(
                "--keep-equal-structures",
                help="Keep environments whose programs differ only in names from an earlier one's.",
                rich_help_panel=_DISCOVERY,
            ),
        ] = False,
        workers: Annotated[
            int | None,
            typer.Option(
                "--workers",
                min=1,
                metavar="N",
                help="Processes that build with the offline model; else as many as there are usable cores. "
                "The result is the same with any number.",
            ),
        ] = None,
        environment_minutes: Annotated[
            float | None,
            typer.Option(
                "--environment-minutes",
                min=0.01,
                metavar="MINUTES",
                help="Leave an environment that is not finished after so long to the next run, which goes on where it "
                "was.",
                show_default=False,
            ),
        ] = None,
        isolation: MakingIsolationOption = MakingIsolationName.DEFAULT,
        models: ModelFlags = ModelFlags(),  # noqa: B008 - a frozen value
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Make environments and scenarios from task texts. Stopped at any moment, the same command resumes."""
        if (tasks is None) == (descriptions is None):
            raise UsageError("give either a file of TASKS or --descriptions FILE")
        given = [
            name
            for name, value in (("--target", target), ("--environments", environments), ("--clusters", clusters))
            if value is not None
        ]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} exclude each other; give one of them")
        from envscaler.cli.asking import ask_models, check_models
        from envscaler.cores import usable_cores
        from envscaler.store import LibraryStore, read_descriptions, read_tasks
        from envscaler.synth import SynthSettings, run_synth

        settings = SynthSettings(
            library=library,
            tasks=tasks,
            descriptions=descriptions,
            limit=limit,
            target=target,
            environments=environments,
            until=until.value,
            scenarios=scenarios,
            seed=seed,
            rounds=rounds,
            threshold=threshold,
            by=by.value,
            all_rounds=all_rounds,
            judge=judge.value,
            repairs=repairs,
            attempts=attempts,
            thresholds=proof.thresholds(),
            keep_unproved=keep_unproved,
            solver_runs=solver_runs,
            scaffold=scaffold.value,
            methods_per_call=methods_per_call,
            checks_per_call=checks_per_call,
            language=language.value,
            min_usefulness=min_usefulness,
            min_modelability=min_modelability,
            similarity=similarity,
            clusters=clusters,
            keep_equal_structures=keep_equal_structures,
            environment_minutes=environment_minutes,
            workers=workers or usable_cores(),
            isolation=isolation.value,
        )

        async def work(opened: Models, prompts: Prompts, progress: Reporter) -> SynthReport:
            return await run_synth(settings, opened, prompts, progress)

        # What cannot be asked or read is said before a library is made for it.
        if tasks is not None:
            read_tasks(tasks, limit=1)
        if descriptions is not None:
            read_descriptions(descriptions, limit=1)
        check_models(models)
        LibraryStore.create(library)
        report = ask_models(models, library, work, quiet=output.quiet)
        from envscaler.cli.build_reports import show_synth

        show_report(report, output, show_synth)
        if report.target is not None and not report.target.reached:
            return EXIT_NO_RESULT
        return EXIT_OK if report.environments or report.output is not None else EXIT_NO_RESULT

    @command(app, "assess", panel=panel)
    def assess(
        library: Annotated[str, typer.Argument(metavar="LIBRARY[/ENV]", help="What to assess.")],
        rounds: RoundsOption = 100,
        threshold: ThresholdOption = 0.85,
        by: ByOption = By.PASS,
        all_rounds: AllRoundsOption = False,
        judge: JudgeOption = Judge.AUTO,
        seed: SeedOption = 0,
        attempts: AttemptsOption = 3,
        force: Annotated[
            bool, typer.Option("--force", help="Assess again what has a valid assessment.", rich_help_panel=_QUALITY)
        ] = False,
        isolation: MakingIsolationOption = MakingIsolationName.DEFAULT,
        models: ModelFlags = ModelFlags(),  # noqa: B008 - a frozen value
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Try the tools of environments and judge what they do; exit 1 when one is below the threshold."""
        from envscaler.cli.asking import ask_models
        from envscaler.cli.places import locate_library
        from envscaler.synth import run_assess

        place = locate_library(library)
        folder = place.library
        assert folder is not None

        async def work(opened: Models, prompts: Prompts, progress: Reporter) -> AssessReport:
            return await run_assess(
                folder,
                opened,
                prompts,
                env_id=place.env_id,
                rounds=rounds,
                threshold=threshold,
                by=by.value,
                judge=judge.value,
                all_rounds=all_rounds,
                seed=seed,
                attempts=attempts,
                force=force,
                isolation=isolation.value,
                progress=progress,
            )

        report = ask_models(models, folder, work, quiet=output.quiet)
        from envscaler.cli.build_reports import show_assess

        show_report(report, output, show_assess)
        kept = bool(report.assessed) and all(row.accepted for row in report.assessed)
        return EXIT_OK if kept else EXIT_NO_RESULT

    @command(app, "scenarios", panel=panel)
    def scenarios(
        library: Annotated[str, typer.Argument(metavar="LIBRARY[/ENV]", help="What to write scenarios for.")],
        per_env: Annotated[
            int | None,
            typer.Option(
                "--per-env",
                min=1,
                max=_MOST,
                metavar="K",
                help="Scenarios per environment; else 3, or with --renew as many as there are.",
                show_default=False,
            ),
        ] = None,
        renew: Annotated[
            bool,
            typer.Option(
                "--renew",
                help="Make scenarios fit a program that was edited: try their solutions again, and write another "
                "scenario in place of one that it no longer solves.",
            ),
        ] = False,
        seed: SeedOption = 0,
        attempts: AttemptsOption = 3,
        proof: ProofFlags = ProofFlags(),  # noqa: B008 - a frozen value
        keep_unproved: KeepUnprovedOption = False,
        solver_runs: SolverRunsOption = None,
        checks_per_call: ChecksPerCallOption = 8,
        isolation: MakingIsolationOption = MakingIsolationName.DEFAULT,
        models: ModelFlags = ModelFlags(),  # noqa: B008 - a frozen value
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Give each environment K scenarios: initial state, task, checks, and the solution where it could be run."""
        from envscaler.cli.asking import ask_models
        from envscaler.cli.places import locate_library
        from envscaler.synth import run_scenarios

        place = locate_library(library)
        folder = place.library
        assert folder is not None

        async def work(opened: Models, prompts: Prompts, progress: Reporter) -> ScenariosReport:
            return await run_scenarios(
                folder,
                opened,
                prompts,
                per_env=per_env if per_env is not None or renew else 3,
                renew=renew,
                env_id=place.env_id,
                seed=seed,
                attempts=attempts,
                thresholds=proof.thresholds(),
                keep_unproved=keep_unproved,
                solver_runs=solver_runs,
                checks_per_call=checks_per_call,
                isolation=isolation.value,
                progress=progress,
            )

        report = ask_models(models, folder, work, quiet=output.quiet)
        from envscaler.cli.build_reports import show_scenarios

        show_report(report, output, show_scenarios)
        if renew and any(row.stale for row in report.environments):
            return EXIT_NO_RESULT
        return EXIT_OK if any(row.present for row in report.environments) else EXIT_NO_RESULT
