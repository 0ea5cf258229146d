"""Statistics count what is there; distances between many are the distances between two."""

from __future__ import annotations

from collections import Counter

from env.lending import scenario, skeleton
from hypothesis import given
from hypothesis import strategies as st

from envscaler.program.colours import colour_distance
from envscaler.report.statistics import _nearest, _packed, statistics_of
from envscaler.report.statistics_page import markdown, page, rows_of
from envscaler.skeleton import Origin

colours = st.dictionaries(st.integers(0, 12), st.integers(1, 4), min_size=1).map(Counter)


@given(st.lists(colours, min_size=2, max_size=6))
def test_the_nearest_is_the_nearest_of_all_pairs(some: list[Counter[int]]) -> None:
    expected = [
        min(colour_distance(one, other) for place, other in enumerate(some) if place != index)
        for index, one in enumerate(some)
    ]
    assert _nearest([_packed(one) for one in some]) == expected


def test_every_figure_is_of_what_is_there() -> None:
    desk = skeleton()
    chinese = desk.model_copy(update={"id": "zh", "origin": Origin(language="zh"), "tools": desk.tools[:-1]})
    task = "请把书借给 Ann 2 天"
    told = statistics_of(
        "two", [(desk, [scenario(desk), scenario(desk, 2)]), (chinese, [scenario(chinese, task=task)])]
    )
    figures = {figure.name: figure for figure in told.figures}
    assert told.languages == {"en": 1, "zh": 1}
    assert told.equal == ()
    assert figures["scenarios"].value == 3
    spread = figures["words of a task text"].spread
    assert spread is not None
    assert spread.count == 3
    assert spread.least <= len("请把书借给天") + 2 <= spread.most
    nearest = figures["distance to the nearest structure"].spread
    assert nearest is not None
    assert 0.0 < nearest.least <= nearest.most < 1.0


def test_a_program_that_cannot_be_read_is_named() -> None:
    broken = skeleton().model_copy(update={"source": "class Desk(:"})
    told = statistics_of("one", [(broken, [])])
    assert told.without_structure == (broken.id,)
    assert broken.id in markdown(told, "stats")


def test_every_line_stands_in_every_form() -> None:
    told = statistics_of("<one>", [(skeleton(), [])])
    text, html = markdown(told, "stats <one>"), page(told, "stats <one>")
    for row in rows_of(told):
        assert f"| {row[0]} |" in text
        assert f"<td>{row[0]}</td>" in html
    assert "<one>" not in html
