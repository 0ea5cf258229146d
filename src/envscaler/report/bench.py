"""Runs of benchmarks as tables: the paper's, with ours beside what others published; as Markdown and as one page.

What is in them is counted in `bench.report`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from markupsafe import escape

from envscaler.bench.catalogue import HELD_OUT, Benchmark, benchmark_named
from envscaler.bench.report import BenchReport, Part, RunCard
from envscaler.report.wording import count
from envscaler.rollout.estimates import Mean

VIOLATIONS = {
    "acted_early": "acted where something needed was not told yet",
    "unknown_tool": "called a tool that does not exist",
    "withheld_tool": "called a function that it had not been told of yet",
}
_SHOWN = 10
_CHECKED = {True: "scenarios' own checks", False: "benchmark's own checker"}
_DRAWN = {True: "environments drawn anew", False: "tasks drawn anew with their variants in all parts"}
"""By whether the benchmark is a library's held-out scenarios."""


@dataclass(frozen=True)
class Table:
    """A table with what is to be said of it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def tables_of(report: BenchReport) -> Iterator[Table]:
    """The tables of a report, those of each benchmark together; before them, of several, one with all their scores."""
    if len({card.benchmark for card in report.runs}) > 1:
        yield _overview(report)
    for name in dict.fromkeys(card.benchmark for card in report.runs):
        benchmark = benchmark_named(name)
        cards = [card for card in report.runs if card.benchmark == name]
        yield _scores(benchmark, cards, report)
        yield _trust(benchmark, cards)
        yield _course(benchmark, cards)
        yield _settings(benchmark, cards, report)
    if report.faulty:
        yield Table(
            "Tasks that are known to be wrong",
            ("task", "reason", "source"),
            tuple((fault.task, fault.reason, fault.source) for fault in report.faulty),
        )


def markdown(report: BenchReport) -> str:
    """The report for a repository or a model card."""
    lines = ["# Benchmarks", ""]
    for table in tables_of(report):
        lines += [f"## {table.title}", "", _line(table.head), f"|---{'|---:' * (len(table.head) - 1)}|"]
        lines += [_line(row) for row in table.rows]
        lines += ["", *(f"{note}\n" for note in table.notes)]
    return "\n".join(lines).rstrip() + "\n"


def page(report: BenchReport) -> str:
    """The report as one HTML page that needs nothing beside itself."""
    style = resources.files("envscaler.report").joinpath("templates/style.css").read_text(encoding="utf-8")
    body = "\n".join(_html(table) for table in tables_of(report))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="envscaler">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Benchmarks</title><style>{style}</style></head>
<body><main><h1>Benchmarks</h1>
{body}
</main></body></html>
"""


def named(card: RunCard, cards: Sequence[RunCard] = ()) -> str:
    """A run as tables name it: by who played, and by its folder where that does not tell it from others."""
    name = _player(card)
    return f"{name} ({card.run.name})" if sum(_player(one) == name for one in cards) > 1 else name


def _player(card: RunCard) -> str:
    return card.model if card.model is not None else {"oracle": "recorded solutions"}.get(card.agent, card.agent)


def share(mean: Mean | float | None) -> str:
    """A score in percent, as the paper writes them; with its interval where there is one."""
    if mean is None or isinstance(mean, float):
        return "–" if mean is None else f"{100 * mean:.2f}"
    if mean.value is None:
        return "–"
    ends = "" if mean.low is None or mean.high is None else f" [{100 * mean.low:.1f}, {100 * mean.high:.1f}]"
    return f"{100 * mean.value:.2f}{ends}"


def _overview(report: BenchReport) -> Table:
    """The paper's table: who played, and the score in each benchmark."""
    benchmarks = [benchmark_named(name) for name in dict.fromkeys(card.benchmark for card in report.runs)]
    players: dict[tuple[str, str], dict[str, list[RunCard]]] = {}
    for card in report.runs:
        players.setdefault((_player(card), _how(card)), {}).setdefault(card.benchmark, []).append(card)
    rows: list[tuple[str, ...]] = []
    for (player, how), runs in players.items():
        for index in range(max(map(len, runs.values()))):
            own = [runs.get(benchmark.name, [])[index : index + 1] for benchmark in benchmarks]
            rows.append((player, how, *(share(card[0].total.official) if card else "–" for card in own)))
    for row, bound in (
        ("  doing nothing", lambda part: part.floor),
        ("  recorded solutions", lambda part: part.ceiling),
    ):
        told = (_common(report, benchmark, bound) for benchmark in benchmarks)
        rows.append((row, "", *map(share, told)))
    published: dict[tuple[str, str], dict[str, float]] = {}
    for benchmark in benchmarks:
        for one in report.published.get(benchmark.name, ()):
            published.setdefault((one.model, one.source), {})[benchmark.name] = one.scores[benchmark.column]
    for (model, _), scores in published.items():
        cells = (f"{scores[one.name]:.2f}" if one.name in scores else "–" for one in benchmarks)
        rows.append((f"{model} (published)", "", *cells))
    notes = [
        "In percent; parts, intervals and all settings stand in the tables below. What doing nothing and recorded "
        "solutions are worth is told where all runs of a benchmark played the same tasks.",
        *(
            f"{_player(card)} in {benchmark_named(card.benchmark).column}: {_tasks_of(card)}, not the whole benchmark."
            for card in report.runs
            if _is_part(card)
        ),
        *(f"Published: {source}." for source in dict.fromkeys(source for _, source in published)),
    ]
    return Table(
        "All benchmarks", ("model", "played with", *(one.column for one in benchmarks)), tuple(rows), tuple(notes)
    )


def _common(report: BenchReport, benchmark: Benchmark, bound: Callable[[Part], float | None]) -> float | None:
    """A floor or ceiling that all runs of a benchmark have; None where they differ."""
    values = {bound(card.total) for card in report.runs if card.benchmark == benchmark.name}
    return values.pop() if len(values) == 1 else None


def _how(card: RunCard) -> str:
    """What a model's score depends on beside the model, in a few words."""
    if card.agent != "model":
        return ""
    sampling = card.settings.get("sampling") or {}
    told = [_thinking(card)]
    told += [f"{name} {sampling[name]}" for name in ("temperature", "top_p") if sampling.get(name) is not None]
    return ", ".join((*filter(None, told), f"{card.settings.get('dialect', 'native')} calls"))


def _thinking(card: RunCard) -> str:
    """Whether a model thought before its replies, as they show it."""
    if card.thinking is None:
        return ""
    if card.thinking in (0.0, 1.0):
        return "thinking" if card.thinking else "non-thinking"
    return f"thinking in {card.thinking:.0%} of its replies"


def _is_part(card: RunCard) -> bool:
    return card.whole is not None and card.total.tasks < card.whole


def _scores(benchmark: Benchmark, cards: Sequence[RunCard], report: BenchReport) -> Table:
    splits = _splits(benchmark, cards)
    rows: list[tuple[str, ...]] = []
    none = ("–",) * len(benchmark.further)
    for card in cards:
        told = (share(card.total.further.get(name)) for name in benchmark.further)
        rows.append((named(card, cards), *_row(splits, card, lambda part: share(part.official)), *told))
        floors = _row(splits, card, lambda part: share(part.floor))
        ceilings = _row(splits, card, lambda part: share(part.ceiling))
        rows += [("  doing nothing", *floors, *none), ("  recorded solutions", *ceilings, *none)]
    published = report.published.get(benchmark.name, ())
    rows += [
        (f"{row.model} (published)", *("–" for _ in splits), f"{row.scores[benchmark.column]:.2f}", *none)
        for row in published
    ]
    head = (
        "model",
        *(benchmark.labels.get(split, split) for split in splits),
        benchmark.column,
        *benchmark.further.values(),
    )
    notes = [
        f"In percent, by the {_CHECKED[benchmark == HELD_OUT]}; its score is the mean of its parts. In brackets: 95% "
        f"intervals, {_DRAWN[benchmark == HELD_OUT]}. Below each run: what doing nothing and what the recorded "
        "solutions are worth in the same tasks."
    ]
    notes += [
        f"{named(card, cards)}: {count(len(card.repeats), 'sample')} of each task by themselves "
        f"{', '.join(share(score) for score in card.repeats)}; standard deviation {share(card.deviation)}."
        for card in cards
        if card.repeats
    ]
    notes += [f"{named(card, cards)}: {card.lack}." for card in cards if card.lack]
    notes += [f"{named(card, cards)}: {_tasks_of(card)}, not the whole benchmark." for card in cards if _is_part(card)]
    notes += [f"Published: {source}." for source in dict.fromkeys(row.source for row in published)]
    return Table(benchmark.title, head, tuple(rows), tuple(notes))


def _tasks_of(card: RunCard) -> str:
    benchmark = benchmark_named(card.benchmark)
    told = (f"{part.tasks} {benchmark.labels.get(split, split)}" for split, part in card.parts.items())
    return f"tasks: {', '.join(told)}"


def _splits(benchmark: Benchmark, cards: Sequence[RunCard]) -> tuple[str, ...]:
    """The parts of a benchmark: its own, or where they are a library's those that were played."""
    return benchmark.splits or tuple(dict.fromkeys(split for card in cards for split in card.parts))


def _row(splits: Sequence[str], card: RunCard, cell: Callable[[Part], str]) -> tuple[str, ...]:
    parts = (cell(card.parts[split]) if split in card.parts else "–" for split in splits)
    return (*parts, cell(card.total))


def _trust(benchmark: Benchmark, cards: Sequence[RunCard]) -> Table:
    """What a reader has to know who believes a score."""
    ks = sorted({k for card in cards for k in card.total.pass_all if k > 1})
    head = (
        "model",
        "score",
        "without violations",
        "without faulty tasks",
        *(f"pass^{k}" for k in ks),
        "violations",
        "recorded calls that failed",
    )
    rows = []
    notes = []
    for card in cards:
        broken = ", ".join(f"{kind} {one.calls}" for kind, one in card.violations.items())
        failed = ", ".join(f"{kind} {number}" for kind, number in card.recorded.items() if number)
        rows.append(
            (
                named(card, cards),
                share(card.total.official),
                share(card.total.clean),
                f"{share(card.without_faulty.official)} ({len(card.faulty)} left out)",
                *(share(card.total.pass_all.get(k)) for k in ks),
                broken or "none",
                failed or "none",
            )
        )
        for kind, one in card.violations.items():
            more = f", … {len(one.tasks) - _SHOWN} more" if len(one.tasks) > _SHOWN else ""
            did = f"{named(card, cards)} {VIOLATIONS.get(kind, kind)} in {count(one.episodes, 'episode')}"
            notes.append(f"{did}, of which the checker took {one.passed}: {', '.join(one.tasks[:_SHOWN])}{more}.")
    notes.append("The checker looks at none of these violations; without them an episode that has one does not pass.")
    return Table(f"{benchmark.title}: how far it can be believed", head, tuple(rows), tuple(notes))


def _course(benchmark: Benchmark, cards: Sequence[RunCard]) -> Table:
    """How episodes went and what they cost."""
    head = ("model", "episodes", "ended", "cut short", "steps", "calls", "refused or raised", "tokens", "cost")
    rows = []
    for card in cards:
        use = card.use
        cost = "–" if not use.calls else "unknown" if use.cost_usd is None else f"${use.cost_usd:.2f}"
        rows.append(
            (
                named(card, cards),
                f"{card.total.episodes:,}",
                ", ".join(f"{stop} {number:,}" for stop, number in card.stops.items()),
                f"{card.left_out:,}",
                "–" if card.mean_steps is None else f"{card.mean_steps:.1f}",
                f"{card.calls:,}",
                f"{card.invalid_calls:,}",
                f"{use.input_tokens + use.output_tokens:,}" if use.calls else "–",
                cost,
            )
        )
    notes = ("What the machinery cut short stands in no score, and the same command plays it again.",)
    return Table(f"{benchmark.title}: episodes", head, tuple(rows), notes)


def _settings(benchmark: Benchmark, cards: Sequence[RunCard], report: BenchReport) -> Table:
    names = list(dict.fromkeys(name for card in cards for name in card.settings))
    rows = [(name, *(_told(card.settings.get(name)) for card in cards)) for name in names]
    if any(card.thinking is not None for card in cards):
        rows.append(("thinking, as replies show it", *(_thinking(card) or "–" for card in cards)))
    notes = [
        f"{run} was played otherwise than the first run, so that they cannot be compared: {told}."
        for run, told in report.differences.items()
        if any(str(card.run) == run for card in cards)
    ]
    return Table(
        f"{benchmark.title}: settings", ("setting", *(named(card, cards) for card in cards)), tuple(rows), tuple(notes)
    )


def _told(value: object) -> str:
    return "–" if value is None else ", ".join(value) if isinstance(value, list) else str(value)


def _line(cells: Sequence[str]) -> str:
    indented = (cell.replace("  ", "&nbsp;&nbsp;", 1) if cell.startswith("  ") else cell for cell in cells)
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in indented)} |"


def _html(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.head)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    notes = "\n".join(f"<p>{escape(note)}</p>" for note in table.notes)
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f"<h2>{escape(table.title)}</h2>\n{whole}\n{notes}"
