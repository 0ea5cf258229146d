"""`envscaler bench overlap`: how like a library is to benchmarks, and a library without what is too like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report
from envscaler.cli.model_flags import BaseUrlOption, EmbeddingModelOption
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from envscaler.bench.installation import Installation
    from envscaler.bench.overlap import Alike, Kind, Overlap, OverlapReport
    from envscaler.curate import FilterReport
    from envscaler.llm.embedding import EmbeddingModel
    from envscaler.store import LibraryStore

_SHOWN = 10
_TEXT = 300


def register(bench_app: typer.Typer) -> None:
    """Add the command to the tree."""

    @command(bench_app, "overlap", panel="Benchmarks")
    def overlap(
        library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="What is compared with benchmarks.")],
        bench: Annotated[
            list[str] | None,
            typer.Option("--bench", metavar="BENCH", help="Only this benchmark; may be repeated. Else all installed."),
        ] = None,
        threshold: Annotated[
            list[str] | None,
            typer.Option(
                "--threshold",
                metavar="KIND=SCORE",
                help="From which likeness on environments, tools or tasks are near-copies; may be repeated.",
            ),
        ] = None,
        nearest: Annotated[
            int, typer.Option("--nearest", min=0, metavar="K", help="Most similar pairs to tell of each kind.")
        ] = 5,
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", metavar="DIR", help="Write a library without the near-copies."),
        ] = None,
        embedding_model: EmbeddingModelOption = None,
        base_url: BaseUrlOption = None,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Find what a library has from benchmarks; exit 1 when an environment or a task is a near-copy."""
        import asyncio

        from envscaler.cli.progress import reporter
        from envscaler.models import ModelSettings, open_models
        from envscaler.store import LibraryStore

        store = LibraryStore.open(library)
        if out is not None and out.resolve() == library.resolve():
            raise UsageError(f"{out} is what is read; name another folder for the new library")
        installed = _installed(bench or [])
        thresholds = _thresholds(threshold or [])
        settings = ModelSettings.load({"embedding_model": embedding_model, "base_url": base_url})

        async def work() -> OverlapReport:
            with reporter(quiet=output.quiet) as display:
                async with open_models(settings) as models:
                    display.stage(_STAGE, len(installed))
                    found = []
                    for one in installed:
                        found.append(await _compared(one, store, models.embedder, thresholds, nearest))
                        display.advance(_STAGE)
                    return _report(store, models.embedder, found)

        report = asyncio.run(work())
        left = _without(report, library, out) if out is not None else None
        show_report(report, output, lambda told, console: _show(told, left, console))
        if left is not None:
            return EXIT_OK if left.environments else EXIT_NO_RESULT
        return EXIT_NO_RESULT if report.found else EXIT_OK


_STAGE = "compare with benchmarks"


def _installed(names: list[str]) -> list[Installation]:
    from envscaler.bench.installation import installations, open_benchmark

    named = names or [benchmark.name for benchmark, installed in installations() if installed is not None]
    if not named:
        raise UsageError("no benchmark is installed; install one with: envscaler bench install bfcl")
    return [open_benchmark(name) for name in dict.fromkeys(named)]


def _thresholds(given: list[str]) -> dict[Kind, float]:
    from envscaler.bench.overlap import THRESHOLDS

    kinds: dict[str, Kind] = {kind: kind for kind in THRESHOLDS}
    out = dict(THRESHOLDS)
    for text in given:
        name, _, score = text.partition("=")
        try:
            value = float(score)
        except ValueError:
            value = -1.0
        if name not in kinds or not 0.0 <= value <= 1.0:
            raise UsageError(f"--threshold {text}: write KIND=SCORE with {', '.join(kinds)} and a score from 0 to 1")
        out[kinds[name]] = value
    return out


async def _compared(
    installed: Installation,
    store: LibraryStore,
    embedder: EmbeddingModel,
    thresholds: dict[Kind, float],
    nearest: int,
) -> Overlap:
    from envscaler.bench.contents import contents_of
    from envscaler.bench.overlap import overlap_with

    contents = await contents_of(installed)
    environments = ((store.read_environment(env_id), list(store.scenarios(env_id))) for env_id in store.env_ids())
    benchmark = installed.benchmark
    return await overlap_with(
        benchmark.name, benchmark.packages, contents, environments, embedder, thresholds=thresholds, nearest=nearest
    )


def _report(store: LibraryStore, embedder: EmbeddingModel, found: list[Overlap]) -> OverlapReport:
    from envscaler.bench.overlap import OverlapReport

    return OverlapReport(library=store.path, embedding=embedder.name, benchmarks=tuple(found))


def _without(report: OverlapReport, library: Path, out: Path) -> FilterReport:
    from envscaler.curate import Selection, filter_library

    environments = {env_id for one in report.benchmarks for env_id in one.copied_environments}
    scenarios = {pair for one in report.benchmarks for pair in one.copied_scenarios}
    selection = Selection(without_environments=tuple(sorted(environments)), without_scenarios=tuple(sorted(scenarios)))
    return filter_library(library, out, selection)


def _show(report: OverlapReport, left: FilterReport | None, out: Console) -> None:
    from rich.table import Table

    from envscaler.bench.overlap import THRESHOLDS
    from envscaler.cli.library import show_filter
    from envscaler.cli.output import text_of

    for one in report.benchmarks:
        first = one.of("tasks")
        names = list(first.quantiles or one.of("tools").quantiles)
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in (one.benchmark, "compared", "with", *names, "near-copies"):
            table.add_column(text_of(name), justify="left" if name == one.benchmark else "right")
        for kind in THRESHOLDS:
            told = one.of(kind)
            scores = (f"{told.quantiles[name]:.2f}" if told.quantiles else "–" for name in names)
            copies = f"{len(told.near_copies):,} (from {told.threshold:.2f} on)"
            table.add_row(text_of(kind, "cyan"), f"{told.compared:,}", f"{told.against:,}", *scores, copies)
        out.print(table)
        for kind in THRESHOLDS:
            _show_pairs(f"Near-copies: {kind}", one.of(kind).near_copies, "red", out)
        for kind in THRESHOLDS:
            others = [pair for pair in one.of(kind).nearest if pair.score < one.of(kind).threshold]
            _show_pairs(f"Most similar: {kind}", others, "", out)
    out.print(text_of(f"Likeness by {report.embedding}; --json has all pairs, distributions and whole texts.", "dim"))
    if left is not None:
        show_filter(left, out)


def _show_pairs(title: str, pairs: Sequence[Alike], style: str, out: Console) -> None:
    from envscaler.cli.output import text_of
    from envscaler.report.wording import shortened, visible

    if not pairs:
        return
    out.print(text_of(title, "bold"))
    for pair in pairs[:_SHOWN]:
        where = pair.env_id if pair.name == pair.env_id else f"{pair.env_id}/{pair.name}"
        out.print(text_of(f"  {pair.score:.2f}  {visible(where)}  –  {visible(pair.theirs)}", style))
        out.print(text_of(f"        {shortened(visible(pair.text), _TEXT)}", "dim"))
        out.print(text_of(f"        {shortened(visible(pair.their_text), _TEXT)}", "dim"))
    if len(pairs) > _SHOWN:
        out.print(text_of(f"  … {len(pairs) - _SHOWN:,} more", "dim"))
