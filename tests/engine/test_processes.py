"""Tests of `Processes`: calls are answered side by side, and nothing outlives whoever asked."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envscaler.cores import usable_cores
from envscaler.engine import Processes
from envscaler.errors import ProcessLost

pytestmark = pytest.mark.anyio

ARITHMETIC = "engine.services:arithmetic"


def unheard(event: object) -> None:
    return None


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc").is_dir()


def wait_for_end(pid: int) -> None:
    while is_running(pid):
        time.sleep(0.05)


def wait_for_pid(log: Path) -> int:
    for _ in range(3000):
        if log.exists() and log.read_text(encoding="ascii").endswith("\n"):
            return int(log.read_text(encoding="ascii"))
        time.sleep(0.02)
    raise AssertionError(f"nobody has written {log}")


async def test_a_call_is_answered_and_its_events_arrive_before_the_answer() -> None:
    heard: list[object] = []
    async with Processes(1, ARITHMETIC, 40) as processes:
        assert await processes.call(("add", 2), heard.append) == 42
        assert heard == ["adding 2"]
        assert await processes.call(("add", 3), heard.append) == 43


async def test_as_many_processes_as_calls_side_by_side_and_no_more_than_allowed() -> None:
    async with Processes(2, ARITHMETIC, 0) as processes:
        pids = await asyncio.gather(*(processes.call(("pid", None), unheard) for _ in range(6)))
        assert len(set(pids)) == 2
        assert set(pids) == set(processes.pids)
    assert not any(map(is_running, pids))


async def test_processes_do_not_see_keys_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with Processes(1, ARITHMETIC, 0) as processes:
        assert "sk-secret" not in (await processes.call(("environment", None), unheard)).values()


async def test_a_process_that_is_killed_is_replaced_and_its_call_made_again(tmp_path: Path) -> None:
    async with Processes(1, ARITHMETIC, 0) as processes:
        assert await processes.call(("die once", tmp_path / "mark"), unheard) == "alive"
        assert await processes.call(("add", 1), unheard) == 1


async def test_a_call_that_kills_every_process_is_lost_after_two_and_the_next_call_is_answered(tmp_path: Path) -> None:
    async with Processes(1, ARITHMETIC, 0) as processes:
        with pytest.raises(ProcessLost, match="signal 9"):
            await processes.call(("die", tmp_path / "log"), unheard)
        assert len(set((tmp_path / "log").read_text().splitlines())) == 2
        assert await processes.call(("add", 1), unheard) == 1


async def test_processes_that_died_while_nobody_asked_them_cost_no_call() -> None:
    async with Processes(2, ARITHMETIC, 0) as processes:
        await asyncio.gather(*(processes.call(("add", 1), unheard) for _ in range(2)))
        for pid in processes.pids:
            os.kill(pid, signal.SIGKILL)
            await asyncio.to_thread(wait_for_end, pid)
        assert await processes.call(("add", 1), unheard) == 1


async def test_what_a_service_raises_arrives_with_its_traceback() -> None:
    async with Processes(1, ARITHMETIC, 0) as processes:
        with pytest.raises(RuntimeError, match=r"(?s)services\.py.*ValueError: seven"):
            await processes.call(("raise", "seven"), unheard)
        assert await processes.call(("add", 1), unheard) == 1


async def test_a_service_that_cannot_be_entered_says_why() -> None:
    async with Processes(1, "engine.services:broken") as processes:
        with pytest.raises(RuntimeError, match="OSError: no room"):
            await processes.call(("add", 1), unheard)


async def test_a_cancelled_call_ends_its_process(tmp_path: Path) -> None:
    async with Processes(1, ARITHMETIC, 0) as processes:
        mark = tmp_path / "pid"
        call = asyncio.create_task(processes.call(("sleep", mark), unheard))
        pid = await asyncio.to_thread(wait_for_pid, mark)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not is_running(pid)
        assert processes.pids == ()


_PARENT = """
import asyncio, signal, sys
from pathlib import Path
from envscaler.engine import Processes

# A shell that runs the tests in the background leaves interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

async def main() -> None:
    async with Processes(1, "engine.services:arithmetic", 0) as processes:
        await processes.call(("sleep", Path(sys.argv[1])), print)

asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
async def test_processes_end_with_their_parent_however_it_ends(how: signal.Signals, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    paths = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
    parent = subprocess.Popen(  # noqa: ASYNC220 - starting it takes no time
        [sys.executable, "-c", _PARENT, mark],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stderr=subprocess.DEVNULL,
    )
    try:
        pid = await asyncio.to_thread(wait_for_pid, mark)
        parent.send_signal(how)
        assert await asyncio.to_thread(parent.wait, 60) != 0
        await asyncio.to_thread(wait_for_end, pid)
    finally:
        parent.kill()


@pytest.mark.parametrize(("text", "cores"), [("100000 100000\n", 1), ("50000 100000\n", 1), ("1\n", None), ("", None)])
def test_the_control_group_limits_the_cores(text: str, cores: int | None, tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(text, encoding="ascii")
    unlimited = usable_cores(tmp_path / "missing")
    assert usable_cores(quota) == (cores or unlimited)
    assert unlimited >= 1
