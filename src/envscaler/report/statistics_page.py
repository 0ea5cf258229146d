"""Writes the statistics of a library as a Markdown or HTML file.

What is counted is `statistics`' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib import resources

from envscaler.report.statistics import Figure, Statistics

HEADINGS = ("", "mean", "median", "least", "most", "paper")


def rows_of(statistics: Statistics) -> Iterator[tuple[str, ...]]:
    """The lines of the table, as texts."""
    for figure in statistics.figures:
        yield _row(figure)
    languages = ", ".join(f"{name} {number:,}" for name, number in statistics.languages.items())
    yield ("environments by language", languages or "–", "", "", "", "")


def markdown(statistics: Statistics, command: str) -> str:
    """The table as Markdown.

    Args:
        command: the command line that made it.
    """
    lines = [
        "# Statistics",
        "",
        f"The library `{statistics.library}` beside the 191 environments of the paper (arXiv 2601.05808); a dash where "
        f"the paper states nothing. A number without a median counts the library as a whole. The table was made by "
        f"`{command}`.",
        "",
        *(f"The library was made by {told}.\n" for told in statistics.made_by),
        f"| {' | '.join(HEADINGS)} |",
        f"|---|{'---:|' * 4}---|",
        *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows_of(statistics)),
        "",
        *_notes(statistics),
    ]
    return "\n".join(lines) + "\n"


def page(statistics: Statistics, command: str) -> str:
    """The table as one HTML page that needs no network."""
    style = resources.files("envscaler.report").joinpath("templates/style.css").read_text(encoding="utf-8")
    head = "".join(f"<th>{escape(name)}</th>" for name in HEADINGS)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows_of(statistics)
    )
    notes = "\n".join(f"<p>{escape(note.replace('`', ''))}</p>" for note in _notes(statistics) if note)
    made_by = "\n".join(f"<p>The library was made by {escape(told)}.</p>" for told in statistics.made_by)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="envscaler">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Statistics of {escape(statistics.library)}</title><style>{style}</style></head>
<body><main><h1>Statistics of {escape(statistics.library)}</h1>
<p>Beside the 191 environments of the paper (arXiv 2601.05808). Made by <code>{escape(command)}</code>.</p>
{made_by}
<table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table>
{notes}
</main></body></html>
"""


def _notes(statistics: Statistics) -> list[str]:
    notes = [
        "The distance of two structures is the share of their program graphs' nodes, each with what is around it, that "
        "they do not share: 0 says that the programs differ only in names, texts and constants. Counted are the graph "
        "of references and, per tool, what it reads, requires and changes (`program/structure.py`)."
    ]
    if statistics.equal:
        notes += ["", "Equal structures: " + "; ".join(f"`{one}` and `{other}`" for one, other in statistics.equal)]
    if statistics.without_structure:
        names = ", ".join(f"`{name}`" for name in statistics.without_structure)
        notes += ["", f"Not compared, because the program cannot be read: {names}"]
    return notes


def _row(figure: Figure) -> tuple[str, ...]:
    paper = figure.paper or "–"
    if figure.value is not None:
        return figure.name, f"{figure.value:,}", "", "", "", paper
    if figure.spread is None:
        return figure.name, "–", "", "", "", paper
    spread = figure.spread
    return (
        figure.name,
        _number(spread.mean, 2),
        *(_number(value) for value in (spread.median, spread.least, spread.most)),
        paper,
    )


def _number(value: float, digits: int | None = None) -> str:
    if digits is None:
        return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,.{digits}f}"
