"""`envscaler play`: call the tools of an environment by hand. What can be typed is `play_session`'s business."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from envscaler.cli.command import OutputFlags, command
from envscaler.cli.isolation import IsolationName, IsolationOption


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""

    @command(app, "play", panel="Look")
    def play(
        environment: Annotated[str, typer.Argument(metavar="LIBRARY/ENV[/SCENARIO]", help="What to play in.")],
        scenario: Annotated[
            str | None, typer.Option("--scenario", "-s", metavar="INDEX|ID", help="Scenario to play; else the first.")
        ] = None,
        seed: Annotated[int | None, typer.Option("--seed", help="Seed of the session; else the scenario's.")] = None,
        isolation: IsolationOption = IsolationName.DEFAULT,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> None:
        """Call the tools of an environment by hand, see what changes, run the checks; lines may come from a pipe."""
        from envscaler.cli.output import console, emit_json, text_of
        from envscaler.cli.places import locate_environment, scenario_of
        from envscaler.cli.play_session import PlaySession
        from envscaler.env import open_library

        place = locate_environment(environment, command="envscaler play")
        assert place.library is not None
        assert place.env_id is not None
        # With --json standard output holds the one object, so that what a person reads goes to standard error.
        out = console(stderr=output.json)
        with open_library(place.library, isolation=isolation.value) as library:
            found = scenario_of(library, place.env_id, scenario if scenario is not None else place.scenario)
            with library.make(place.env_id, found.id, seed=seed) as env:
                env.reset()
                session = PlaySession(env, out)
                if not output.quiet:
                    session.greet()
                for line in _lines(session.words):
                    if not sys.stdin.isatty() and line.strip():
                        out.print(text_of(f"> {line.strip()}", "dim"))
                    if not session.run(line):
                        break
                if output.json:
                    emit_json(session.report())


def _lines(words: tuple[str, ...]) -> Iterator[str]:
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    _complete(words)
    while True:
        try:
            yield input("> ")
        except EOFError:
            print()
            return


def _complete(words: tuple[str, ...]) -> None:
    try:
        import readline
    except ImportError:  # Windows, and Pythons built without it: lines are then plain
        return

    def candidate(text: str, index: int) -> str | None:
        found = [word for word in words if word.startswith(text)]
        return found[index] if index < len(found) else None

    readline.set_completer(candidate)
    readline.parse_and_bind("tab: complete")
