"""`envscaler show`: a library, an environment, a scenario, a run or an episode, for eyes, programs and browsers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import OutputFlags, command
from envscaler.cli.isolation import MakingIsolationName, MakingIsolationOption
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from envscaler.env import Library
    from envscaler.report.page import IndexedEpisode
    from envscaler.report.views import LibraryView, RunView
    from envscaler.sandbox import Isolation
    from envscaler.store import LibraryStore, RunStore
    from envscaler.store.reading import Complaint
    from envscaler.trajectory import Trajectory

_PAGE_RUNS = 10
"""Runs of a library shown on its page, each with a few episodes."""
_PAGE_EPISODES_EACH = 5


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""

    @command(app, "show", panel="Look")
    def show(
        place: Annotated[
            str,
            typer.Argument(
                metavar="LIBRARY[/ENV[/SCENARIO]] | RUN | TRACE", help="What to show; SCENARIO: index or id."
            ),
        ],
        trajectory: Annotated[
            str | None,
            typer.Argument(
                help="Episode of a RUN: its index, its id, or a scenario id. Of a TRACE: a role, or a part of what "
                "was asked about.",
                show_default=False,
            ),
        ] = None,
        html: Annotated[
            Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML page that needs no network.")
        ] = None,
        isolation: MakingIsolationOption = MakingIsolationName.DEFAULT,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> None:
        """Show a library, an environment, a scenario, a run, an episode with its state changes, or a trace."""
        from envscaler.cli.places import locate
        from envscaler.env import open_library
        from envscaler.store import RunStore

        if Path(place).is_file():
            from envscaler.llm.tracing import is_trace

            if is_trace(Path(place)):
                _show_trace(Path(place), trajectory, html, output)
                return
        found = locate(place)
        if found.run is not None:
            _show_run(RunStore.open(found.run), trajectory, html, isolation.value, output)
            return
        if trajectory is not None:
            raise UsageError(f"{place} is no run; an episode is named after a RUN (LIBRARY/rollouts/…)")
        assert found.library is not None
        with open_library(found.library, isolation=isolation.value) as library:
            if found.env_id is None:
                _show_library(library, html, output)
            else:
                if html is not None:
                    raise UsageError("--html shows a whole library or a run; name one of them")
                _show_part(library, found.env_id, found.scenario, output)


def _show_trace(path: Path, which: str | None, html: Path | None, output: OutputFlags) -> None:
    from envscaler.cli.output import console, emit_json
    from envscaler.cli.show_trace import exchanges_of, show_exchange
    from envscaler.errors import StoreError

    if html is not None:
        raise UsageError("--html shows a whole library or a run; name one of them")
    found = exchanges_of(path, which)
    if output.json:
        shown = [
            {**seen.exchange.model_dump(mode="json"), "faults": seen.faults, "mended": seen.mended} for seen in found
        ]
        emit_json({"exchanges": shown})
        return
    out, number = console(), 0
    for seen in found:
        number += 1
        show_exchange(seen, out)
    if not number:
        raise StoreError(f"{path} has no question{f' that {which!r} fits' if which else ''}")


def _show_library(library: Library, html: Path | None, output: OutputFlags) -> None:
    from envscaler.cli.output import console, emit_json

    problems: list[str] = []
    view = view_library(library.store, problems.append)
    warn(problems)
    if html is not None:
        write_library_page(library, view, html)
        _tell_page(html, output)
    elif output.json:
        emit_json(view)
    else:
        from envscaler.cli.show_library import show_library

        show_library(view, console())


def _show_part(library: Library, env_id: str, scenario: str | None, output: OutputFlags) -> None:
    from envscaler.cli.output import console, emit_json
    from envscaler.cli.places import scenario_of
    from envscaler.report.views import view_environment

    path = f"{library.path}/{env_id}"
    if scenario is not None:
        found = scenario_of(library, env_id, scenario)
        warn(library.problems)
        if output.json:
            emit_json(found)
        else:
            from envscaler.cli.show_library import show_scenario

            show_scenario(found, path + (f" --scenario {found.id}"), console())
        return
    view = view_environment(library.skeleton(env_id), library.store.read_assessment(env_id), library.scenarios(env_id))
    warn(library.problems)
    if output.json:
        emit_json(view)
    else:
        from envscaler.cli.show_library import show_environment

        show_environment(view, path, console())


def _show_run(run: RunStore, which: str | None, html: Path | None, isolation: Isolation, output: OutputFlags) -> None:
    from envscaler.cli.output import console, emit_json
    from envscaler.cli.places import library_of_run
    from envscaler.report.replay import view_episode

    if which is not None:
        if html is not None:
            raise UsageError("--html shows a whole run; leave the episode out")
        trajectory = pick_episode(run, which)
        library = library_of_run(run, isolation)
        episode = view_episode(trajectory, library)
        if output.json:
            emit_json(episode)
        else:
            from envscaler.cli.show_run import show_episode

            show_episode(episode, console())
        return
    problems: list[str] = []
    view = read_run(run, problems.append)
    warn(problems)
    if html is not None:
        from envscaler.report.page import MAX_EPISODES, run_page, write_page

        write_page(html, run_page(view, replayed(run, library_of_run(run, isolation), MAX_EPISODES)))
        _tell_page(html, output)
    elif output.json:
        emit_json(view)
    else:
        from envscaler.cli.show_run import show_run

        show_run(view, console())


def _tell_page(html: Path, output: OutputFlags) -> None:
    from envscaler.cli.output import emit_json

    if output.json:
        emit_json({"page": str(html)})
    else:
        print(f"wrote {html}; open it in a browser")


def view_library(store: LibraryStore, complain: Complaint | None = None) -> LibraryView:
    """The library at a glance, read environment by environment.

    Args:
        complain: told of each broken line, which is then left out.
    """
    from envscaler.report.views import LibraryView, summarize_environment

    rows = []
    for env_id in store.env_ids():
        rows.append(
            summarize_environment(
                store.read_environment(env_id), store.read_assessment(env_id), store.scenarios(env_id, complain)
            )
        )
    runs = [store.run(run_id) for run_id in store.rollouts()]
    return LibraryView(
        path=str(store.path),
        environments=tuple(rows),
        runs=tuple(read_run(run, complain).summary for run in runs if run.exists),
    )


def write_library_page(library: Library, view: LibraryView, html: Path) -> None:
    """Write the page of a library, with a few episodes of each of its runs."""
    from envscaler.report.page import MAX_ENVIRONMENTS, library_page, write_page
    from envscaler.report.views import view_environment

    store = library.store
    shown = (
        view_environment(library.skeleton(row.id), store.read_assessment(row.id), library.scenarios(row.id))
        for row in view.environments[:MAX_ENVIRONMENTS]
    )
    runs = []
    for summary in view.runs[:_PAGE_RUNS]:
        run = store.run(summary.id)
        runs.append((read_run(run, _ignored), replayed(run, library, _PAGE_EPISODES_EACH)))
    write_page(html, library_page(view, shown, runs))


def replayed(run: RunStore, library: Library | None, limit: int) -> list[IndexedEpisode]:
    """The first episodes of a run with their state changes; those of different environments come first."""
    from envscaler.report.replay import view_episode
    from envscaler.sandbox import BlockingSandbox

    chosen: list[tuple[int, Trajectory]] = []
    rest: list[tuple[int, Trajectory]] = []
    seen: set[str] = set()
    for index, trajectory in enumerate(run.trajectories(_ignored)):
        if len(chosen) >= limit:
            break
        fresh = trajectory.env_id not in seen
        seen.add(trajectory.env_id)
        if fresh:
            chosen.append((index, trajectory))
        elif len(rest) < limit:
            rest.append((index, trajectory))
    picked = sorted((chosen + rest)[:limit], key=lambda pair: pair[0])
    with BlockingSandbox(isolation=library.isolation if library is not None else "default") as sandbox:
        return [(index, view_episode(trajectory, library, sandbox)) for index, trajectory in picked]


def _ignored(problem: str) -> None:
    """For what is read a second time, after its problems were told."""


def warn(problems: Sequence[str]) -> None:
    """Say on standard error what was left out, the first few one by one."""
    from envscaler.cli.command import complain

    for problem in problems[:5]:
        complain(f"warning: left out: {problem}")
    if len(problems) > 5:
        complain(f"warning: … and {len(problems) - 5} more broken lines")


def read_run(run: RunStore, complain: Complaint | None = None) -> RunView:
    """A run from its folder."""
    from envscaler.report.views import view_run
    from envscaler.rollout import RunRecord

    record = run.read_run(RunRecord)
    return view_run(
        run.path.resolve().name,
        str(run.path),
        record,
        run.trajectories(complain),
    )


def pick_episode(run: RunStore, which: str) -> Trajectory:
    """The episode of that index, id or scenario id.

    Raises:
        UsageError: if there is none; the message says which there are, or the nearest.
    """
    from difflib import get_close_matches

    names: dict[str, None] = {}
    total = 0
    for index, trajectory in enumerate(run.trajectories(_ignored)):
        if which in (str(index), trajectory.id, trajectory.scenario_id):
            return trajectory
        names[trajectory.id] = None
        names[trajectory.scenario_id] = None
        total += 1
    if not total:
        raise UsageError(f"{run.path} holds no episode yet")
    near = get_close_matches(which, names, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"give an index from 0 to {total - 1}"
    raise UsageError(f"{run.path} has no episode {which!r}; {hint}")
