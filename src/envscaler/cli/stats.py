"""`envscaler stats`: what a library holds, counted, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from envscaler.report.statistics import Statistics
    from envscaler.scenario import Scenario
    from envscaler.skeleton import EnvSkeleton
    from envscaler.store import LibraryStore

_KINDS = (".md", ".html")


def register(app: typer.Typer, library_app: typer.Typer) -> None:
    """Add the command to the tree, under its two names."""

    @command(library_app, "stats", panel="Library")
    @command(app, "stats", panel="Look")
    def stats(
        library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="What is counted.")],
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", metavar="FILE", help="Write the table as Markdown (.md) or a page (.html)."),
        ] = None,
        map_file: Annotated[
            Path | None,
            typer.Option("--map", metavar="FILE", help="Draw what the library covers (.png), beside the paper."),
        ] = None,
        map_data: Annotated[
            Path | None,
            typer.Option("--map-data", metavar="FILE", help="Write the numbers of that map (.json or .csv)."),
        ] = None,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Count tools, states, rules, scenarios, checks and structures of a library, beside the paper's figures."""
        from envscaler.cli.show import warn
        from envscaler.report.page import write_page
        from envscaler.report.statistics import statistics_of
        from envscaler.report.statistics_page import markdown, page
        from envscaler.store import LibraryStore

        if out is not None and out.suffix not in _KINDS:
            raise UsageError(f"{out}: name a file that ends in .md or .html")
        _require_map_places(map_file, map_data)
        store = LibraryStore.open(library)
        problems: list[str] = []
        provenance = store.read_index().provenance
        statistics = statistics_of(library.resolve().name, _environments(store, problems), provenance)
        warn(problems)
        if out is not None:
            line = f"envscaler stats {library} --out {out}"
            write_page(out, markdown(statistics, line) if out.suffix == ".md" else page(statistics, line))
        if statistics.languages and (map_file is not None or map_data is not None):
            _write_maps(library, store, map_file, map_data)
        _show(statistics, [path for path in (out, map_file, map_data) if path is not None], output)
        return EXIT_OK if statistics.languages else EXIT_NO_RESULT


def _environments(store: LibraryStore, problems: list[str]) -> Iterator[tuple[EnvSkeleton, Iterator[Scenario]]]:
    for env_id in store.env_ids():
        yield store.read_environment(env_id), store.scenarios(env_id, problems.append)


def _require_map_places(map_file: Path | None, map_data: Path | None) -> None:
    """Find out before anything is read whether the map can be written.

    Raises:
        UsageError: if it cannot be.
    """
    if map_file is None and map_data is None:
        return
    from envscaler.report.coverage import HEADINGS, MARK
    from envscaler.report.coverage_map import require_drawing
    from envscaler.store import begins_with, require_replaceable

    if map_file is not None:
        if map_file.suffix != ".png":
            raise UsageError(f"{map_file}: name a file that ends in .png")
        require_drawing(map_file)
    if map_data is not None:
        if map_data.suffix not in (".json", ".csv"):
            raise UsageError(f"{map_data}: name a file that ends in .json or .csv")
        mark = MARK if map_data.suffix == ".json" else ",".join(HEADINGS)
        require_replaceable(map_data, lambda place: begins_with(place, mark))


def _write_maps(library: Path, store: LibraryStore, map_file: Path | None, map_data: Path | None) -> None:
    import asyncio

    from envscaler.llm.embedding import NgramEmbedder
    from envscaler.report.coverage import as_csv, as_json, coverage_of, measured
    from envscaler.report.coverage_map import write_map
    from envscaler.store import write_atomic

    environments = (measured(skeleton, sum(1 for _ in scenarios)) for skeleton, scenarios in _environments(store, []))
    coverage = asyncio.run(coverage_of(library.resolve().name, environments, NgramEmbedder()))
    if map_data is not None:
        write_atomic(map_data, as_json(coverage) if map_data.suffix == ".json" else as_csv(coverage))
    if map_file is not None:
        write_map(map_file, coverage)


def _show(statistics: Statistics, written: list[Path], output: OutputFlags) -> None:
    from envscaler.cli.output import console, emit_json

    if output.json:
        emit_json(statistics)
    elif written:
        for path in written:
            print(f"wrote {path}")
    else:
        show_statistics(statistics, console())


def show_statistics(statistics: Statistics, out: Console) -> None:
    """The table, and pairs that should not be."""
    from rich.table import Table

    from envscaler.cli.output import text_of
    from envscaler.report.statistics_page import HEADINGS, rows_of

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(text_of(f"library {statistics.library}"), style="cyan", overflow="fold")
    for name in HEADINGS[1:-1]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("paper (191 environments)", style="dim", overflow="fold")
    for row in rows_of(statistics):
        table.add_row(*map(text_of, row))
    out.print(table)
    for one, other in statistics.equal[:10]:
        out.print(text_of(f"Equal but for names: {one} and {other}", "yellow"))
    if len(statistics.equal) > 10:
        out.print(f"… and {len(statistics.equal) - 10} more pairs; --json lists them all")
    for env_id in statistics.without_structure[:5]:
        out.print(text_of(f"Not compared, its program cannot be read: {env_id}", "yellow"))
