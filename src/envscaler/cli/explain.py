"""`envscaler explain`: why checks of an episode say what they say. How it is worded is `show_reading`'s business."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import OutputFlags, command
from envscaler.cli.isolation import MakingIsolationName, MakingIsolationOption
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from envscaler.audit.explain_records import EpisodeReading
    from envscaler.env import Library
    from envscaler.sandbox import Isolation
    from envscaler.store import RunStore


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""

    @command(app, "explain", panel="Look")
    def explain(
        run: Annotated[str, typer.Argument(metavar="RUN", help="Folder of a run.")],
        trajectory: Annotated[str, typer.Argument(help="Episode: its index, its id, or a scenario id.")],
        check: Annotated[
            str | None,
            typer.Argument(
                help="A check: its number, from 1, or a part of its sentence; else all that do not hold.",
                show_default=False,
            ),
        ] = None,
        library: Annotated[
            Path | None,
            typer.Option("--library", "-l", metavar="DIR", help="Has the programs; also found by itself."),
        ] = None,
        isolation: MakingIsolationOption = MakingIsolationName.DEFAULT,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> None:
        """Tell why a check of an episode holds or not: what it read, which call changed that, what was missing."""
        import asyncio

        from envscaler.cli.command import show_report
        from envscaler.cli.places import locate_run
        from envscaler.cli.show import pick_episode
        from envscaler.cli.show_reading import show_reading
        from envscaler.rollout import RunRecord
        from envscaler.store import RunStore

        store = RunStore.open(locate_run(run))
        episode = pick_episode(store, trajectory)
        record = store.read_run(RunRecord)
        opened = _library(store, library, isolation.value)

        async def explained() -> EpisodeReading:
            from envscaler.audit.explain import explain_episode
            from envscaler.sandbox import Sandbox

            async with Sandbox(isolation=opened.isolation) as sandbox:
                return await explain_episode(
                    episode,
                    opened,
                    sandbox,
                    which=check,
                    observations=record.settings.observations if record is not None else None,
                )

        reading = asyncio.run(explained())
        show_report(reading, output, show_reading)


def _library(run: RunStore, named: Path | None, isolation: Isolation) -> Library:
    from envscaler.cli.places import library_of_run
    from envscaler.env import open_library

    if named is not None:
        return open_library(named, isolation=isolation)
    library = library_of_run(run, isolation)
    if library is None:
        raise UsageError(f"the library that {run.path} played is not at hand; name it with --library")
    return library
