"""`envscaler export sft`: the trajectories of runs as rows that trainers read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, complain, show_report


class RewardName(StrEnum):
    """How a verdict becomes a number."""

    FRACTION = "fraction"
    GAINED = "gained"
    GAINED_SOFT = "gained_soft"
    SOLVED = "solved"


def register(export_app: typer.Typer) -> None:
    """Add the commands to the tree."""

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
