"""Runs that are killed or cut short: what models have answered is not asked again, and nothing is scored falsely."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rollout.test_run import keys, make_library, models, without_times

from envscaler.errors import EndpointUnavailable, ReplyError, RequestFailed, SandboxError
from envscaler.llm.chat import ModelRequest
from envscaler.llm.scripted import Scripted
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage
from envscaler.rollout import RolloutSettings, run_rollout
from envscaler.store import RunStore

STEPS = 6


def looks_and_lends(request: ModelRequest) -> Scripted:
    """Looks four times, lends Emma, says so: six answers."""
    seen = sum(isinstance(message, ToolMessage) for message in request.messages)
    if seen == STEPS - 1:
        return "Done."
    if seen == STEPS - 2:
        return AssistantMessage(
            tool_calls=(ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"}, id="c"),)
        )
    return AssistantMessage(tool_calls=(ToolCall(name="find_books", arguments={"title": "E" * seen}, id="c"),))


KILLED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from rollout.test_resume import looks_and_lends
from rollout.test_run import models
from envscaler.env import open_library
from envscaler.rollout import RolloutSettings, run_rollout

answered = open({log!r}, "ab", buffering=0)

async def slowly(request):
    await asyncio.sleep(0.02)
    answered.write(b".")
    return looks_and_lends(request)

settings = RolloutSettings(samples={samples}, concurrency={concurrency}, out=Path({run!r}))
asyncio.run(run_rollout(open_library({library!r}), settings, models(slowly)))
"""


@pytest.mark.parametrize(
    ("samples", "concurrency", "answers_before_the_kill"),
    [
        (4, 5, 3),
        (4, 5, 70),
        pytest.param(100, 512, 2000, marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_loses_the_calls_in_flight_only(
    tmp_path: Path, samples: int, concurrency: int, answers_before_the_kill: int
) -> None:
    library = make_library(tmp_path / "L")
    run, log = tmp_path / "run", tmp_path / "answered"
    program = KILLED.format(
        tests=str(Path(__file__).parents[1]),
        run=str(run),
        library=str(library.path),
        log=str(log),
        samples=samples,
        concurrency=concurrency,
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 250
    while process.poll() is None and time.monotonic() < deadline:
        if log.exists() and log.stat().st_size >= answers_before_the_kill:
            break
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = log.stat().st_size
    asked = 0

    def counted(request: ModelRequest) -> Scripted:
        nonlocal asked
        asked += 1
        return looks_and_lends(request)

    settings = RolloutSettings(samples=samples, concurrency=concurrency, out=run)
    report = asyncio.run(run_rollout(library, settings, models(counted)))
    episodes = 6 * samples
    assert report.scores.stops == {"finished": episodes}
    # The one that was being written down when the kill came may have been answered.
    assert before + asked - 1 <= episodes * STEPS <= before + asked
    undisturbed = asyncio.run(
        run_rollout(library, settings.model_copy(update={"out": tmp_path / "other"}), models(looks_and_lends))
    )
    assert (run / "trajectories.jsonl").read_bytes().count(b"\n") == episodes
    assert without_times(run) == without_times(undisturbed.run)
    assert report.scores == undisturbed.scores
    assert not (run / ".replies").exists()


@pytest.mark.anyio
async def test_an_endpoint_that_stays_down_in_the_middle_costs_no_answer_twice(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")
    asked = 0

    def breaks(request: ModelRequest) -> Scripted:
        nonlocal asked
        asked += 1
        return looks_and_lends(request) if asked <= 20 else EndpointUnavailable("down")

    with pytest.raises(EndpointUnavailable):
        await run_rollout(library, RolloutSettings(out=tmp_path / "run"), models(breaks))
    asked = -100
    report = await run_rollout(library, RolloutSettings(out=tmp_path / "run"), models(breaks))
    assert asked + 100 == 6 * STEPS - 20
    assert report.scores.stops == {"finished": 6}
    assert report.record.spent.calls == 6 * STEPS - 20
    assert report.scores.use.calls == 6 * STEPS


FAILURES: list[Any] = [RequestFailed("not this one"), SandboxError("a worker is lost"), ReplyError("no message")]


@pytest.mark.anyio
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
async def test_what_the_machinery_cuts_short_is_played_again_in_the_same_run(tmp_path: Path, failure: Any) -> None:
    library = make_library(tmp_path / "L")
    asked = failed = 0

    def fails_once(request: ModelRequest) -> Scripted:
        nonlocal asked, failed
        asked += 1
        if asked == 15:
            failed += 1
            return failure
        return looks_and_lends(request)

    report = await run_rollout(library, RolloutSettings(concurrency=1), models(fails_once))
    assert failed == 1
    assert report.scores.stops == {"finished": 6}
    assert report.scores.solved_rate == 1.0
    assert len(keys(report.run)) == report.played == 6
    # Replies that led to no message would lead there again; others are not asked for twice.
    assert asked == 6 * STEPS + 1 + (2 if isinstance(failure, ReplyError) and type(failure) is ReplyError else 0)


@pytest.mark.anyio
async def test_what_never_comes_to_its_end_has_no_verdict_and_is_tried_by_the_next_command(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L", environments=1)
    asked = 0

    def fails(request: ModelRequest) -> Scripted:
        nonlocal asked
        if request.sample[0] == 0 and any(isinstance(message, ToolMessage) for message in request.messages):
            asked += 1
            return SandboxError("a worker is lost")
        return looks_and_lends(request)

    settings = RolloutSettings(samples=2, out=tmp_path / "run")
    report = await run_rollout(library, settings, models(fails))
    assert asked == 9
    assert report.scores.stops == {"finished": 3, "infrastructure": 3}
    assert report.scores.judged == 3
    assert report.scores.rewards["fraction"].value == 1.0
    assert report.unfinished == 3
    assert all(part.verdict is None for part in RunStore(report.run).trajectories() if part.sample == 0)
    again = await run_rollout(library, settings, models(looks_and_lends))
    assert (again.resumed, again.played) == (3, 3)
    assert again.scores.stops == {"finished": 6}
    assert len(keys(again.run)) == 6
