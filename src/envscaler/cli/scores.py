"""`envscaler scores` and `envscaler compare`: what runs are worth, alone and against each other."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report
from envscaler.cli.run import RewardName
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from envscaler.rollout.scorecard import Scorecard


class GroupName(StrEnum):
    """What episodes are grouped by."""

    ENVIRONMENT = "environment"
    DIFFICULTY = "difficulty"
    STOP = "stop"


def register(app: typer.Typer) -> None:
    """Add the commands to the tree."""

    @command(app, "scores", panel="Look")
    def score_runs(
        runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Folders of runs.")],
        by: Annotated[
            GroupName | None,
            typer.Option("--by", help="Score also each environment, level of difficulty or stop reason by itself."),
        ] = None,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Rewards, pass@k and pass^k with 95% intervals by environment, floors, invalid calls, steps, tokens, cost."""
        from envscaler.cli.output import console, emit_json
        from envscaler.cli.score_tables import show_groups, show_scorecards

        cards = [_card(run) for run in runs]
        if output.json:
            emit_json({"runs": [card.model_dump(mode="json") for card in cards]})
        else:
            out = console()
            show_scorecards(cards, out)
            if by is not None:
                show_groups(cards, by.value, out)
        return EXIT_OK if any(card.table.total.judged for card in cards) else EXIT_NO_RESULT

    @command(app, "compare", panel="Look")
    def compare_runs(
        first: Annotated[str, typer.Argument(metavar="RUN_A", help="Folder of the run that is compared with.")],
        second: Annotated[str, typer.Argument(metavar="RUN_B", help="Folder of the run that is to be better.")],
        reward: Annotated[RewardName, typer.Option("--reward", help="Reward that is compared.")] = RewardName.FRACTION,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Whether a second run is better than a first one, by a paired test over the scenarios that both played."""
        from envscaler.cli.places import locate_run
        from envscaler.cli.score_tables import show_comparison
        from envscaler.rollout import compare, results_of_run
        from envscaler.store import RunStore

        folders = [locate_run(first), locate_run(second)]
        if folders[0].resolve() == folders[1].resolve():
            raise UsageError(f"{first} and {second} are the same run; name two runs")
        one, other = (results_of_run(RunStore.open(folder)) for folder in folders)
        report = compare(one, other, reward.value)
        show_report(report, output, lambda told, out: show_comparison(told, folders, out))
        return EXIT_OK


def _card(name: str) -> Scorecard:
    from envscaler.cli.places import library_of_run, locate_run
    from envscaler.rollout.scorecard import scorecard
    from envscaler.store import RunStore

    run = RunStore.open(locate_run(name))
    library = library_of_run(run)
    return scorecard(run, library.store if library is not None else None)
