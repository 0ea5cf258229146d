"""Writes a library or a run as one HTML page that needs nothing beside itself: no network, no fonts, no server.

What is shown is gathered in `views`; reading it from disk is the business of whoever calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from envscaler.report import wording
from envscaler.report.schema_graph import schema_svg
from envscaler.report.views import EnvironmentView, EpisodeView, LibraryView, RunView, size_of_state
from envscaler.store import begins_with, require_replaceable, write_atomic

MAX_ENVIRONMENTS = 200
"""Environments shown in full on one page; the table lists all. More would be slow to open on a phone."""
MAX_EPISODES = 50
"""Episodes of one run shown in full on one page."""

IndexedEpisode = tuple[int, EpisodeView]
"""An episode with its index in the run."""


def library_page(
    library: LibraryView,
    environments: Iterable[EnvironmentView],
    runs: Sequence[tuple[RunView, Sequence[IndexedEpisode]]] = (),
) -> str:
    """The page of a library, with some of its runs.

    Args:
        environments: those shown in full, at most `MAX_ENVIRONMENTS`.
        runs: each with the episodes shown step by step.
    """
    shown = tuple(environments)
    rows = library.environments
    tiles = [
        (f"{len(rows):,}", "environments"),
        (f"{sum(row.queries + row.updates for row in rows):,}", "tools"),
        (f"{sum(row.rules for row in rows):,}", "rules"),
        (f"{sum(row.scenarios for row in rows):,}", "scenarios"),
        (f"{sum(row.solutions for row in rows):,}", "solutions executed"),
        (f"{sum(row.test_calls for row in rows):,}", "test calls"),
    ]
    return rendered(
        "page.html.j2",
        title=f"Library {Path(library.path).name or library.path}",
        subtitle="Executable environments with tools, rules and rewarded scenarios, synthesized from task texts.",
        tiles=tiles,
        library=library,
        environments=shown,
        detailed={view.skeleton.id for view in shown},
        runs=runs,
    )


def run_page(run: RunView, episodes: Sequence[IndexedEpisode]) -> str:
    """The page of one run, with the episodes shown step by step."""
    summary = run.summary
    tiles = [
        (f"{summary.scores.episodes:,}", "episodes"),
        (wording.percent(summary.scores.solved_rate), "solved"),
        *((wording.decimal(mean.value), f"mean reward ({mode})") for mode, mean in summary.scores.rewards.items()),
    ]
    agents = ", ".join([*summary.agents, *summary.models])
    return rendered(
        "page.html.j2",
        title=f"Run {summary.id}",
        subtitle=f"Episodes played by {agents}." if agents else "No episode was played.",
        tiles=tiles,
        library=None,
        environments=(),
        detailed=set(),
        runs=[(run, episodes)],
    )


def require_page_place(path: Path) -> None:
    """
    Raises:
        StoreError: if a page may not be written there, because somebody else's file is.
    """
    # Every page names the program in its head.
    require_replaceable(path, lambda file: begins_with(file, "envscaler"))


def write_page(path: Path, page: str) -> None:
    """Write a page.

    Raises:
        StoreError: if it cannot be written, or a file that is no page of ours is there.
    """
    require_page_place(path)
    # A task text may hold half of a surrogate pair, which no encoding of a file can.
    write_atomic(path, page.encode("utf-8", "replace"))


def rendered(template: str, **values: Any) -> str:
    """A page made from a template, with style and script in it."""
    assets = resources.files("envscaler.report").joinpath("templates")
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(assets.joinpath("style.css").read_text(encoding="utf-8")),
            script=Markup(assets.joinpath("page.js").read_text(encoding="utf-8")),
            version=metadata.version("envscaler"),
            **values,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("envscaler.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        # A tool's words may hold control characters; a page shows them as what they are.
        finalize=lambda value: wording.visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        arguments=wording.arguments_text,
        compact=wording.compact,
        count=wording.count,
        decimal=wording.decimal,
        examined=wording.examined_text,
        observed=wording.observed,
        percent=wording.percent,
        interval=wording.interval_text,
        repair=wording.repair_text,
        pretty=wording.pretty,
        schema_svg=schema_svg,
        shortened=wording.shortened,
        signature=wording.signature,
        sizes=size_of_state,
    )
    return environment
