from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from envscaler.cli.progress import BarReporter, LineReporter, Reporter, duration, reporter
from envscaler.cli.spending import faults_text, spent_text
from envscaler.models import Faults


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_are_rare_and_the_end_of_a_stage_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    display = LineReporter(clock)
    display.spending = lambda: "3 calls"
    display.stage("discover", 1000)
    for _ in range(1000):
        clock.now += 1 / 128
        display.advance("discover")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "[0:05] discover 640/1,000 · 3 calls",
        "[0:07] discover 1,000/1,000 · 3 calls",
    ]


def test_a_note_is_a_line_at_once_and_drives_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    LineReporter(Clock()).note("endpoint down \x1b[2J waiting")
    assert capsys.readouterr().err == "[0:00] endpoint down \\x1b[2J waiting\n"


def test_a_reader_that_went_away_ends_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        tried = 0

        def write(self, text: str) -> int:
            self.tried += 1
            raise BrokenPipeError

    gone = Gone()
    monkeypatch.setattr("sys.stderr", gone)
    LineReporter(Clock()).note("still at work")
    assert gone.tried


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with reporter(quiet=True) as display:
        assert type(display) is Reporter
        display.stage("play", 1)
        display.advance("play")
        display.note("hello")
    assert capsys.readouterr().err == ""


def test_bars_show_counts_and_notes() -> None:
    screen = io.StringIO()
    display = BarReporter(Console(file=screen, force_terminal=True, width=100))
    display.spending = lambda: "7 calls"
    with display:
        display.stage("discover", None)
        display.stage("discover", 3)
        display.advance("discover", 3)
        display.advance("assess")
        display.note("endpoint is back")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "3/3" in text
    assert "assess" in text
    assert "7 calls" in text
    assert "endpoint is back" in text


@pytest.mark.parametrize(("seconds", "text"), [(40, "40 s"), (300, "5 min"), (4200, "1 h 10 min"), (3590, "1 h 0 min")])
def test_spans_of_time_are_said_as_people_do(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_an_unknown_cost_is_unknown() -> None:
    assert spent_text(2, 1000, None) == "2 calls · 1,000 tokens · cost unknown"
    assert spent_text(2, 1000, 0.0) == "2 calls · 1,000 tokens · $0.00"


def test_what_went_wrong_is_told_by_kind() -> None:
    assert faults_text(Faults()) == ""
    assert faults_text(Faults(replies=1)) == "1 reply that could not be used"
    faults = Faults(requests={"rate_limited": 2, "timeout": 1}, replies=3)
    assert faults_text(faults) == "3 failed requests (2 rate limited, 1 timeout) and 3 replies that could not be used"
    faults = Faults(mended={"JSON syntax": 2, "no fence": 1})
    assert faults_text(faults) == "3 slips of form made good (2 JSON syntax, 1 no fence)"
