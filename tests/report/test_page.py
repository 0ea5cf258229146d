from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from env.lending import scenario, skeleton
from hypothesis import given
from hypothesis import strategies as st

from envscaler.assessment import Assessment, Repair, TestCase
from envscaler.errors import StoreError
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from envscaler.report.page import library_page, run_page, write_page
from envscaler.report.schema_graph import schema_svg
from envscaler.report.views import (
    EpisodeView,
    LibraryView,
    StepView,
    summarize_environment,
    view_environment,
    view_run,
)
from envscaler.skeleton import Attribute, Entity, EnvDescription, EnvSkeleton
from envscaler.state import diff
from envscaler.trajectory import CheckResult, Step, StopReason, Trajectory, Verdict

HOSTILE = "<script>alert(1)</script> & \"quotes\" 'too' \x1b[31m {{ 7 * 7 }} 图书馆"


class Outline(HTMLParser):
    """Collects tags, attributes and ids, and sees whether every element is closed."""

    VOID = {"meta", "input", "br", "link", "path", "rect"}

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def trajectory(**changes: object) -> Trajectory:
    environment = skeleton()
    played = scenario(environment)
    call = ToolCall(name="lend_book", arguments={"book_id": "B1", "member": HOSTILE}, id="c1")
    fields: dict[str, object] = {
        "id": "t1",
        "env_id": environment.id,
        "scenario_id": played.id,
        "env_digest": environment.digest,
        "scenario_digest": played.digest,
        "agent": "model",
        "model": HOSTILE,
        "steps": (
            Step(
                turn=0,
                user=UserMessage(content=HOSTILE),
                assistant=AssistantMessage(content=HOSTILE, reasoning=HOSTILE, tool_calls=(call,)),
                observations=(ToolMessage(content=HOSTILE, tool_call_id="c1", name="lend_book", is_error=True),),
            ),
        ),
        "stop": StopReason.FINISHED,
        "verdict": Verdict(checks=(CheckResult(description=HOSTILE, passed=False, error=HOSTILE),)),
        "error": HOSTILE,
    }
    return Trajectory(**{**fields, **changes})  # type: ignore[arg-type]


def episode(played: Trajectory) -> EpisodeView:
    changes = diff({"a": HOSTILE, "gone": 1}, {"a": 2, "new/<b>": HOSTILE})
    return EpisodeView(
        trajectory=played, task=HOSTILE, steps=tuple(StepView(step=step, changes=(changes,)) for step in played.steps)
    )


def assessed(environment: EnvSkeleton) -> Assessment:
    """Nine calls of ten passed; a tool was repaired, another one given up."""
    call = ToolCall(name="lend_book", arguments={"book_id": HOSTILE})
    cases = [
        TestCase(
            round=number,
            call=call,
            case="negative" if number % 2 else "positive",
            before="a",
            after="a",
            verdict="pass" if number else "fail",
            reason=HOSTILE,
            judge="oracle" if number % 2 else "model",
        )
        for number in range(10)
    ]
    return Assessment(
        env_id=environment.id,
        env_digest=environment.digest,
        rounds=100,
        made=10,
        cases=tuple(cases),
        repairs=(
            Repair(tool="lend_book", attempts=2, accepted=1, refused=(HOSTILE,), before=tuple(cases[:2])),
            Repair(tool=HOSTILE, attempts=1, accepted=0, refused=(HOSTILE,), dropped=HOSTILE),
        ),
    )


def hostile_page() -> str:
    environment = skeleton(description=EnvDescription(summary=HOSTILE, introduction=HOSTILE))
    scenarios = [scenario(environment, task=HOSTILE, initial_state={"books": {"B1": {"title": HOSTILE}}})]
    view = view_environment(environment, assessed(environment), scenarios)
    library = LibraryView(path=f"/somewhere/{HOSTILE}", environments=(view.summary,))
    played = trajectory()
    run = view_run("run-1", "rollouts/run-1", None, [played])
    return library_page(library, [view], [(run, [(0, episode(played))])])


def test_a_page_needs_nothing_beside_itself() -> None:
    outline = Outline(hostile_page())
    assert not {"link", "img", "iframe", "object"} & set(outline.tags)
    assert outline.tags.count("script") == 1
    named = {value for name, value in outline.attributes if name in ("src", "href", "action", "srcset")}
    assert all(value is not None and value.startswith("#") for value in named)
    assert not re.search(r"https?://|@import|url\(", hostile_page())


def test_every_element_of_a_page_is_closed() -> None:
    outline = Outline(hostile_page())
    assert outline.faults == []
    assert outline.open == []


def test_no_word_of_a_model_becomes_markup_or_script() -> None:
    page = hostile_page()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x1b" not in page
    assert "{{ 7 * 7 }}" in page
    assert "图书馆" in page


def test_the_assessment_is_told_with_intervals_shares_and_repairs() -> None:
    page = hostile_page()
    assert "10 test calls: 90% passed" in page
    assert "59.6% to 98.2%" in page
    assert "50% by oracles" in page
    assert "90 rounds saved" in page
    assert "positive: 4 of 5 passed (37.6% to 96.4%)" in page
    assert "lend_book was repaired (1 of 2 earlier calls failed, 2 versions)" in page
    assert "was given up after 1 version" in page


def test_links_of_a_page_lead_somewhere() -> None:
    outline = Outline(hostile_page())
    ids = [value for name, value in outline.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = {value for name, value in outline.attributes if name == "href" and value}
    assert {link[1:] for link in links} <= set(ids)


def test_an_episode_shows_state_changes_and_verdict() -> None:
    played = trajectory()
    page = run_page(view_run("run-1", "run-1", None, [played]), [(0, episode(played))])
    for part in (
        'class="added"',
        'class="removed"',
        'class="changed"',
        "/new~1&lt;b&gt;",
        "does not hold",
        "not solved",
    ):
        assert part in page


def test_an_episode_that_the_machinery_cut_short_has_no_reward() -> None:
    played = trajectory(stop=StopReason.INFRASTRUCTURE, verdict=None)
    view = view_run("run-1", "run-1", None, [played])
    assert view.summary.scores.judged == 0
    page = run_page(view, [(0, episode(played))])
    assert "no verdict" in page
    assert "0.000" not in page


def test_an_empty_library_and_an_empty_run_have_pages() -> None:
    assert "This library is empty." in library_page(LibraryView(path="L", environments=()), [])
    assert "No episode was played." in run_page(view_run("r", "r", None, []), [])


def test_a_large_library_says_which_environments_are_shown() -> None:
    environment = skeleton()
    row = summarize_environment(environment, None, [])
    library = LibraryView(path="L", environments=(row, row.model_copy(update={"id": "other"})))
    page = library_page(library, [view_environment(environment, None, [])])
    assert "Details of the first 1 of 2 environments follow." in page


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", "<p>\ud800 图</p>")
    assert "图" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(StoreError):
        write_page(tmp_path / "page.html" / "below", "x")


NAMES = st.sampled_from(["Book", "Loan", "Member", "Shelf", "Fine"])


@given(
    st.lists(
        st.tuples(NAMES, st.lists(NAMES | st.none(), min_size=1, max_size=14)),
        max_size=5,
        unique_by=lambda pair: pair[0],
    )
)
def test_any_schema_can_be_drawn_without_boxes_that_overlap(drawn: list[tuple[str, list[str | None]]]) -> None:
    entities = [
        Entity(
            name=name,
            attributes=tuple(
                Attribute(name=f"field_{index}", type="dict[str, list[str]] <x>", references=target)
                for index, target in enumerate(targets)
            ),
        )
        for name, targets in drawn
    ]
    svg = str(schema_svg(entities))
    assert "<x>" not in svg
    places = [
        (float(x), float(y), float(width), float(height))
        for x, y, width, height in re.findall(
            r'translate\(([\d.]+) ([\d.]+)\)"><rect class="box" width="([\d.]+)" height="([\d.]+)"', svg
        )
    ]
    assert len(places) == len(entities)
    for index, (x, y, width, height) in enumerate(places):
        for other_x, other_y, other_width, other_height in places[:index]:
            apart_x = x >= other_x + other_width or other_x >= x + width
            apart_y = y >= other_y + other_height or other_y >= y + height
            assert apart_x or apart_y
