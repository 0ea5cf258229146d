"""`envscaler rollout` and `envscaler export sft`: the commands that use a library."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, complain, show_report
from envscaler.cli.isolation import IsolationName, IsolationOption
from envscaler.cli.model_flags import ModelFlags

if TYPE_CHECKING:
    from envscaler.cli.progress import Reporter
    from envscaler.models import Models
    from envscaler.roles.role import Prompts
    from envscaler.rollout import RolloutReport


class AgentName(StrEnum):
    """Who plays."""

    MODEL = "model"
    ORACLE = "oracle"
    RANDOM = "random"
    NOOP = "noop"


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


def register(app: typer.Typer, export_app: typer.Typer) -> None:
    """Add the commands to the tree."""

    @command(app, "rollout", panel="Use")
    def rollout(
        library: Annotated[str, typer.Argument(metavar="LIBRARY[/ENV]", help="Whose scenarios are played.")],
        agent: Annotated[
            AgentName,
            typer.Option(
                "--agent",
                "-a",
                help="A model, the recorded solutions (oracle), valid calls at random, or doing nothing (noop).",
            ),
        ] = AgentName.MODEL,
        samples: Annotated[int, typer.Option("--samples", min=1, help="Episodes of each scenario.")] = 1,
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
        seed: Annotated[int, typer.Option("--seed", help="Seed of agents that draw.")] = 0,
        coerce: Annotated[
            bool,
            typer.Option("--coerce", help='Take arguments in other types where nothing is lost: "3" for an integer.'),
        ] = False,
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
            agent=agent.value,
            samples=samples,
            mode=mode.value,
            step_limit=step_limit,
            seed=seed,
            env_ids=(place.env_id,) if place.env_id is not None else None,
            scenarios_per_env=per_env,
            out=out,
            coerce=coerce,
            isolation=isolation.value,
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

    @command(export_app, "sft", panel="Formats")
    def sft(
        run: Annotated[str, typer.Argument(metavar="RUN", help="Folder of a run.")],
        out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="JSONL file to write.")],
        min_reward: Annotated[
            float | None,
            typer.Option("--min-reward", min=0.0, max=1.0, help="Keep episodes with at least this reward."),
        ] = None,
        reward: Annotated[RewardName, typer.Option("--reward", help="Reward that is compared.")] = RewardName.FRACTION,
        solved: Annotated[
            bool, typer.Option("--solved", help="Keep only episodes in which every check holds.")
        ] = False,
        finished: Annotated[
            bool, typer.Option("--finished/--unfinished", help="Keep only episodes that the agent ended itself.")
        ] = True,
        any_format: Annotated[
            bool, typer.Option("--any-format", help="Keep also conversations that are not well formed.")
        ] = False,
        min_steps: Annotated[
            int | None, typer.Option("--min-steps", min=0, help="Drop episodes of fewer steps.")
        ] = None,
        max_steps: Annotated[
            int | None, typer.Option("--max-steps", min=1, help="Drop episodes of more steps.")
        ] = None,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Write `messages` and `tools` rows, as TRL and OpenAI's fine-tuning read them."""
        from envscaler.cli.places import locate_run
        from envscaler.cli.run_reports import show_export
        from envscaler.export import SftFilters, export_sft

        filters = SftFilters(
            well_formed=not any_format,
            finished=finished,
            min_steps=min_steps,
            max_steps=max_steps,
            reward_at_least=min_reward,
            reward_mode=reward.value,
            solved=solved,
        )
        report = export_sft(locate_run(run), out, filters)
        if report.partial is not None:
            complain(f"warning: {report.partial}")
        show_report(report, output, show_export)
        return EXIT_OK if report.kept else EXIT_NO_RESULT
