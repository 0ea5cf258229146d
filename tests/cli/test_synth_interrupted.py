"""`envscaler synth` that is ended at random moments, in every way, and called again: the library is the same.

The command runs in a process of its own, against a server whose replies are a function of the request.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from cli.recorded_synthesis import FLAGS, answer_to
from cli.test_frame import heeding_interrupts, started
from servers.chat_server import Body, ChatServer, Fault, server_error, slow
from synth.conftest import tree

pytestmark = pytest.mark.timeout(600)

often = pytest.mark.parametrize("times", [2, pytest.param(8, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
"""How often a run is ended before it is left to come to its end."""
TASKS, ENVIRONMENTS = 3, 2
IN_FLIGHT = 16
LATENCY_S = 0.02
"""A server that answers at once leaves no moment in which many calls are in flight."""


class Synthesis:
    """The command, as often as it is called."""

    def __init__(self, server: ChatServer, tasks: Path, library: Path) -> None:
        self.server = server
        self.library = library
        where = ("--library", library, "--model", "test-model", "--base-url", server.base_url)
        self._command = ("synth", tasks, "--limit", TASKS, *where, "--max-in-flight", IN_FLIGHT, *FLAGS, "--json")

    def begin(self, *more: object) -> subprocess.Popen[str]:
        return started(*self._command, *more, preexec_fn=heeding_interrupts)

    def finish(self, *more: object) -> dict[str, object]:
        """Run it to its end; what it reports."""
        out, err = self.begin(*more).communicate(timeout=300)
        assert out, err
        report: dict[str, object] = json.loads(out)
        return report

    def stopped(self, after: int, stop: Callable[[subprocess.Popen[str]], None]) -> tuple[int, str] | None:
        """Begin it, and stop it when so many calls more were answered; how it ended, None where it ended before."""
        served = self.server.served
        process = self.begin()
        while process.poll() is None and self.server.served < served + after:
            time.sleep(0.005)
        if process.poll() is not None:
            assert process.returncode == 0, process.communicate()[1]
            return None
        stop(process)
        _, err = process.communicate(timeout=120)
        return process.returncode, err


Begin = Callable[[str], Synthesis]


@pytest.fixture
def synthesis(replies: Mapping[str, str], synth_tasks: Path, tmp_path: Path) -> Iterator[Begin]:
    def answer(body: Body) -> str:
        time.sleep(LATENCY_S)
        return answer_to(replies, body)

    with ChatServer(answer) as server:
        yield lambda name: Synthesis(server, synth_tasks, tmp_path / name)


@pytest.fixture(scope="module")
def calm(
    replies: Mapping[str, str], synth_tasks: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, bytes], int]:
    """The library of an undisturbed run, and how many calls it takes."""
    library = tmp_path_factory.mktemp("calm") / "L"
    with ChatServer(lambda body: answer_to(replies, body)) as server:
        report = Synthesis(server, synth_tasks, library).finish()
        assert len(report["environments"]) == ENVIRONMENTS
        return tree(library), server.served


def moments(calls: int, seed: str, times: int) -> Sequence[int]:
    """After how many answers more each of several runs ends, drawn so that the last one is still at work."""
    chance = random.Random(f"{seed} {times}")
    return [chance.randrange(1, calls // (times + 1)) for _ in range(times)]


def once(number: signal.Signals) -> Callable[[subprocess.Popen[str]], None]:
    return lambda process: process.send_signal(number)


def twice(wait_s: float) -> Callable[[subprocess.Popen[str]], None]:
    def stop(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGINT)
        time.sleep(wait_s)
        process.send_signal(signal.SIGINT)

    return stop


@often
@pytest.mark.parametrize(
    ("name", "stop"),
    [
        pytest.param("interrupted", once(signal.SIGINT), marks=pytest.mark.slow),
        pytest.param("terminated", once(signal.SIGTERM), marks=pytest.mark.slow),
        pytest.param("interrupted at once again", twice(0.0), marks=pytest.mark.slow),
        ("interrupted again", twice(0.05)),
    ],
)
def test_whoever_ends_it_tidily_finds_the_same_library_in_the_end(
    name: str,
    stop: Callable[[subprocess.Popen[str]], None],
    times: int,
    synthesis: Begin,
    calm: tuple[dict[str, bytes], int],
) -> None:
    library, calls = calm
    run = synthesis(name)
    for after in moments(calls, name, times):
        ended = run.stopped(after, stop)
        assert ended is not None
        code, err = ended
        assert code == 130, err
        assert "interrupted; what was finished is kept, and the same command resumes" in err
        assert "Traceback" not in err
        assert not [line for line in err.splitlines() if line.startswith(("Task ", "Exception ", "Future "))]
    run.finish()
    assert tree(run.library) == library
    # What was answered is not asked again; what was in flight is.
    assert run.server.served <= calls + times * IN_FLIGHT


@often
def test_killed_at_random_moments_it_makes_the_same_library_in_the_end(
    times: int, synthesis: Begin, calm: tuple[dict[str, bytes], int]
) -> None:
    library, calls = calm
    run = synthesis("killed")
    for after in moments(calls, "killed", times):
        ended = run.stopped(after, once(signal.SIGKILL))
        assert ended is not None
        assert ended[0] == -signal.SIGKILL
    run.finish()
    assert tree(run.library) == library
    assert run.server.served <= calls + times * IN_FLIGHT


@pytest.mark.parametrize("limit", ["--max-calls", pytest.param("--max-tokens", marks=pytest.mark.slow)])
def test_a_budget_that_runs_out_again_and_again_comes_to_the_same_library(
    limit: str, synthesis: Begin, calm: tuple[dict[str, bytes], int]
) -> None:
    library, calls = calm
    run = synthesis("spent")
    chance = random.Random(limit)
    tokens_a_call = 1 if limit == "--max-calls" else 2_000
    codes = []
    while not codes or codes[-1] == 3:
        budget = chance.randrange(calls // 5, calls // 2) * tokens_a_call
        process = run.begin(limit, budget)
        _, err = process.communicate(timeout=300)
        codes.append(process.returncode)
        assert ("the budget is used up" in err) == (codes[-1] == 3), err
        assert len(codes) < 40
    assert codes[-1] == 0
    assert len(codes) > 2
    assert tree(run.library) == library
    if limit == "--max-calls":
        assert run.server.served == calls, "a call that is within the budget is not broken off by the end of it"


OUTAGES: dict[str, Fault | None] = {
    "refuses connections": None,
    "answers 503": server_error(503),
    "hangs": slow(2.5),
}


@pytest.mark.parametrize("kind", ["hangs", *(pytest.param(kind, marks=pytest.mark.slow) for kind in list(OUTAGES)[:2])])
def test_an_endpoint_that_is_away_for_a_while_is_waited_for_and_shown(
    kind: str, replies: Mapping[str, str], synth_tasks: Path, tmp_path: Path, calm: tuple[dict[str, bytes], int]
) -> None:
    library, calls = calm
    away_s = 12.0
    began: list[float] = []

    def fault(index: int, body: object) -> Fault | None:
        if index >= calls // 3 and not began:
            began.append(time.monotonic())
            if OUTAGES[kind] is None:
                server.down()
        return OUTAGES[kind] if began and time.monotonic() < began[0] + away_s else None

    with ChatServer(lambda body: answer_to(replies, body), faults=fault) as server:
        config = tmp_path / "envscaler.toml"
        # A call that hangs ends at its time, be it ten minutes or two seconds.
        config.write_text("timeout_s = 2.0\n", encoding="utf-8")
        process = Synthesis(server, synth_tasks, tmp_path / "away").begin("--config", config)
        while not began and process.poll() is None:
            time.sleep(0.01)
        if OUTAGES[kind] is None:
            time.sleep(away_s)
            server.up()
        _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "has given no answer for" in err
    assert "waiting, for" in err
    assert "answers again; going on" in err
    assert tree(tmp_path / "away") == library
