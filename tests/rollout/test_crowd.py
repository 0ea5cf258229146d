"""Very many episodes in flight against a server that fails in every way: none is lost, doubled or scored falsely."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from rollout.test_over_http import lends
from rollout.test_run import keys, make_library, without_times
from servers.chat_server import TRANSPORT_FAULTS, ChatServer, Fault, at_random, slow

from envscaler.env import open_library
from envscaler.llm.transport import RetryPolicy
from envscaler.models import ModelSettings, open_models
from envscaler.rollout import RolloutReport, RolloutSettings, run_rollout

sizes = pytest.mark.parametrize(
    ("samples", "in_flight"), [(8, 48), pytest.param(171, 512, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)


def faults(rate: float, in_flight: int) -> object:
    """Faults of the transport at random, answers that come late, and now and then one that comes too late."""
    chance = at_random(rate, seed=in_flight, kinds=(*TRANSPORT_FAULTS, slow(0.05), slow(0.2)))

    def fault(index: int, body: object) -> Fault | None:
        return slow(20.0) if index % 500 == 7 else chance(index, {})

    return fault


def played(url: str, library: Path, run: Path, samples: int, in_flight: int) -> RolloutReport:
    settings = RolloutSettings(samples=samples, concurrency=in_flight, out=run)

    async def play() -> RolloutReport:
        retry = RetryPolicy(base_s=0.01, cap_s=0.2, attempts=30)
        asked = ModelSettings(model="test-model", base_url=url, max_in_flight=in_flight, timeout_s=10.0)
        async with open_models(asked, retry=retry) as models:
            return await run_rollout(open_library(library), settings, models)

    return asyncio.run(play())


@sizes
def test_no_episode_is_lost_doubled_or_scored_falsely(tmp_path: Path, samples: int, in_flight: int) -> None:
    library = make_library(tmp_path / "L").path
    episodes = 6 * samples
    with ChatServer(lends, faults=faults(0.3, in_flight)) as server:  # type: ignore[arg-type]
        report = played(server.base_url, library, tmp_path / "run", samples, in_flight)
    assert report.scores.stops == {"finished": episodes}
    assert report.scores.solved_rate == 1.0
    assert report.scores.invalid_calls == episodes
    assert report.scores.use.calls == 3 * episodes
    assert Counter(keys(report.run)).most_common(1)[0][1] == 1
    assert len(keys(report.run)) == episodes
    assert set(server.injected) >= {"rate_limited", "status_503", "cut", "hung_up", "malformed_json", "slow"}


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from rollout.test_crowd import played
played({url!r}, Path({library!r}), Path({run!r}), {samples}, {in_flight})
"""


@sizes
def test_a_kill_in_the_middle_and_a_resume_give_the_same_set(tmp_path: Path, samples: int, in_flight: int) -> None:
    library = make_library(tmp_path / "L").path
    run, episodes = tmp_path / "run", 6 * samples
    with ChatServer(lends, faults=faults(0.2, in_flight)) as server:  # type: ignore[arg-type]
        program = KILLED.format(
            tests=str(Path(__file__).parents[1]),
            url=server.base_url,
            library=str(library),
            run=str(run),
            samples=samples,
            in_flight=in_flight,
        )
        process = subprocess.Popen([sys.executable, "-c", program])
        while process.poll() is None and server.served < episodes:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        before = server.served
        report = played(server.base_url, library, run, samples, in_flight)
    assert report.scores.stops == {"finished": episodes}
    # What was answered and not in flight is not asked again.
    assert report.record.spent.calls <= 3 * episodes - before + in_flight
    with ChatServer(lends) as server:
        undisturbed = played(server.base_url, library, tmp_path / "other", samples, in_flight)
    assert without_times(run) == without_times(undisturbed.run)
    assert report.scores == undisturbed.scores
