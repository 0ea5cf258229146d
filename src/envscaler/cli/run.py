"""`envscaler rollout`: an agent plays the scenarios of a library."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report
from envscaler.cli.isolation import IsolationName, IsolationOption
from envscaler.cli.model_flags import ModelFlags
from envscaler.cli.play_flags import PlayFlags, SlipsName

if TYPE_CHECKING:
    from envscaler.cli.progress import Reporter
    from envscaler.models import Models
    from envscaler.roles.role import Prompts
    from envscaler.rollout import RolloutReport


class OracleName(StrEnum):
    """How the oracle plays."""

    PLAIN = "plain"
    VARIED = "varied"


class ModeName(StrEnum):
    """How the task is told."""

    NON_CONVERSATION = "non-conversation"
    CONVERSATION = "conversation"


class RewardName(StrEnum):
    """How a verdict becomes a number."""

    FRACTION = "fraction"
    GAINED = "gained"
    GAINED_SOFT = "gained_soft"
    SOLVED = "solved"


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""

    @command(app, "rollout", panel="Use")
    def rollout(
        library: Annotated[str, typer.Argument(metavar="LIBRARY[/ENV]", help="Whose scenarios are played.")],
        play: PlayFlags = PlayFlags(),  # noqa: B008 - a frozen value
        samples: Annotated[int, typer.Option("--samples", min=1, help="Episodes of each scenario.")] = 1,
        concurrency: Annotated[
            int | None,
            typer.Option(
                "--concurrency",
                min=1,
                help="Episodes in play at the same time; else somewhat more than the endpoint is given calls, or 32.",
            ),
        ] = None,
        mode: Annotated[
            ModeName, typer.Option("--mode", help="The whole task at once, or a simulated user who tells it in parts.")
        ] = ModeName.NON_CONVERSATION,
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", metavar="RUN", help="Folder of the run; else one in LIBRARY/rollouts."),
        ] = None,
        step_limit: Annotated[
            int | None,
            typer.Option("--step-limit", min=1, help="Turns of the agent at most; else 30, in conversation 40."),
        ] = None,
        per_env: Annotated[
            int | None, typer.Option("--per-env", min=1, metavar="K", help="Only K scenarios of each environment.")
        ] = None,
        coerce: Annotated[
            bool,
            typer.Option("--coerce", help='Take arguments in other types where nothing is lost: "3" for an integer.'),
        ] = False,
        oracle: Annotated[
            OracleName,
            typer.Option(
                "--oracle",
                help="The recorded solution alone, or from the second sample on also look-ups, orders and mistakes.",
            ),
        ] = OracleName.PLAIN,
        user_slips: Annotated[
            SlipsName,
            typer.Option(
                "--user-slips",
                help="Slips of the simulated user: count them, ask it again, or also mask what slips all the same.",
            ),
        ] = SlipsName.RETRY,
        system_prompt: Annotated[
            Path | None,
            typer.Option(
                "--system-prompt",
                metavar="FILE",
                exists=True,
                dir_okay=False,
                help="The agent's system prompt; {{ doc }} stands for the environment's description and rules.",
            ),
        ] = None,
        isolation: IsolationOption = IsolationName.DEFAULT,
        models: ModelFlags = ModelFlags(),  # noqa: B008 - a frozen value
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Let an agent play scenarios and record every step. Stopped at any moment, the same command resumes."""
        from envscaler.cli.asking import ask_models
        from envscaler.cli.places import locate_library
        from envscaler.cli.progress import reporter
        from envscaler.cli.run_reports import show_rollout
        from envscaler.cli.show import warn
        from envscaler.env import open_library
        from envscaler.rollout import RolloutSettings, run_rollout

        place = locate_library(library)
        folder = place.library
        assert folder is not None
        settings = RolloutSettings(
            **play.settings(),
            samples=samples,
            mode=mode.value,
            step_limit=step_limit,
            env_ids=(place.env_id,) if place.env_id is not None else None,
            scenarios_per_env=per_env,
            out=out,
            coerce=coerce,
            oracle=oracle.value,
            user_slips=user_slips.value,
            system_prompt=system_prompt,
            isolation=isolation.value,
            concurrency=concurrency,
        )
        with open_library(folder) as opened_library:
            if settings.agent == "model" or settings.mode == "conversation":

                async def work(opened: Models, prompts: Prompts, progress: Reporter) -> RolloutReport:
                    return await run_rollout(opened_library, settings, opened, prompts, progress)

                report = ask_models(models, folder, work, quiet=output.quiet)
            else:
                import asyncio

                with reporter(quiet=output.quiet) as display:
                    report = asyncio.run(run_rollout(opened_library, settings, progress=display))
        warn(opened_library.problems)
        show_report(report, output, show_rollout)
        return EXIT_OK if report.scores.episodes and not report.unfinished else EXIT_NO_RESULT
