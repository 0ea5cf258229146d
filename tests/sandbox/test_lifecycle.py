"""Whatever ends the owner of a sandbox ends its processes too, and an open one leaks nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from envscaler.errors import SandboxError
from envscaler.sandbox import BlockingSandbox, Program, Sandbox

from .conftest import LEDGER, QUICK
from .processes import children_of, living, open_descriptors, sandbox_processes

OWNER = """
import sys, time
from envscaler.sandbox import BlockingSandbox, Program
source = '''
class Env:
    def loop(self):
        while True:
            try:
                while True: pass
            except BaseException: pass
'''
box = BlockingSandbox()
session = box.open(Program(source, "Env"), {})
print("open", flush=True)
session.call("loop", {})
"""


def wait_until_gone(processes: set[int]) -> set[int]:
    for _ in range(300):
        if not living(processes):
            break
        time.sleep(0.02)
    return living(processes)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_owner_also_in_the_middle_of_an_endless_call(signal_number: int) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"open\n"
    time.sleep(0.2)
    started = sandbox_processes(owner.pid)
    assert len(started) >= 2
    owner.send_signal(signal_number)
    owner.wait(20)
    owner.stdout.close()
    assert wait_until_gone(started) == set()


@pytest.mark.anyio
async def test_closing_ends_every_process_and_returns_every_descriptor() -> None:
    descriptors, children = open_descriptors(), children_of(os.getpid())
    async with Sandbox(QUICK) as sandbox:
        opened = [await sandbox.open(LEDGER, {"accounts": {}}) for _ in range(5)]
        await opened[0].close()
        await sandbox.check(["def check_func(s): return True"], initial_state={}, final_state={})
    await sandbox.aclose()
    assert children_of(os.getpid()) == children
    # A descriptor of the event loop's own may have come meanwhile (its thread pool); sessions hold one each.
    assert open_descriptors() <= descriptors + 1
    with pytest.raises(SandboxError):
        await opened[1].call("draw", {})
    await opened[1].close()
    with pytest.raises(SandboxError):
        await sandbox.open(LEDGER, {})


@pytest.mark.anyio
async def test_closed_sessions_and_done_checks_leave_no_process_behind() -> None:
    async with Sandbox(QUICK) as sandbox:
        keeper = await sandbox.open(LEDGER, {})
        assert keeper.worker is not None
        descriptors = open_descriptors()
        (zygote,) = (pid for pid in children_of(os.getpid()) if keeper.worker.pid in children_of(pid))
        for _ in range(10):
            session = await sandbox.open(LEDGER, {})
            await session.call("wreck", {})
            await session.close()
            await sandbox.check(["def check_func(s): return True"], initial_state={}, final_state={})
        for _ in range(100):
            if children_of(zygote) == {keeper.worker.pid}:
                break
            await asyncio.sleep(0.02)
        assert children_of(zygote) == {keeper.worker.pid}
        assert open_descriptors() == descriptors


@pytest.mark.anyio
async def test_cancelling_a_whole_group_in_the_middle_of_its_calls_leaves_no_process() -> None:
    async with Sandbox(QUICK) as sandbox:

        async def work() -> None:
            session = await sandbox.open(LEDGER, {})
            try:
                while True:
                    await session.call("open_account", {"owner": "A"})
            finally:
                await session.close()

        tasks = [asyncio.create_task(work()) for _ in range(8)]
        await asyncio.sleep(0.5)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        keeper = await sandbox.open(LEDGER, {})
        assert keeper.worker is not None
        (zygote,) = (pid for pid in children_of(os.getpid()) if keeper.worker.pid in children_of(pid))
        for _ in range(100):
            if children_of(zygote) == {keeper.worker.pid}:
                break
            await asyncio.sleep(0.02)
        assert children_of(zygote) == {keeper.worker.pid}


@pytest.mark.anyio
async def test_the_blocking_sandbox_works_inside_a_running_loop() -> None:
    with BlockingSandbox(QUICK) as box:
        session = box.open(LEDGER, {"accounts": {}})
        assert session.call("journal", {}).result == 0
        session.close()


def test_the_blocking_sandbox_serves_several_threads_and_closes_twice() -> None:
    box = BlockingSandbox(QUICK)
    results: list[int] = []

    def work() -> None:
        session = box.open(LEDGER, {"accounts": {}})
        session.call("open_account", {"owner": "A"})
        results.append(session.call("journal", {}).result)
        session.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 6
    session = box.open(LEDGER, {})
    box.close()
    box.close()
    session.close()


def test_a_sandbox_outlives_the_thread_that_opened_it() -> None:
    box = BlockingSandbox(QUICK)
    opened = []
    thread = threading.Thread(target=lambda: opened.append(box.open(LEDGER, {})))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert opened[0].call("journal", {}).result == 0
    box.close()


def test_isolation_is_reported_as_it_is(box: BlockingSandbox) -> None:
    report = box.isolation
    assert report.level in ("hardened", "portable")
    assert report.level == "hardened" or report.missing


@pytest.mark.anyio
async def test_a_zygote_that_cannot_start_is_an_error_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SandboxError, match="does not come up"):
        async with Sandbox(QUICK):
            pass


def test_workers_load_none_of_the_packages_that_only_the_host_needs(box: BlockingSandbox) -> None:
    names = "sorted({name.partition('.')[0] for name in sys.modules} & {'pydantic', 'openai', 'numpy', 'asyncio'})"
    session = box.open(Program(f"import sys\nclass Env:\n def loaded(self): return {names}\n", "Env"), {})
    assert session.call("loaded", {}).result == []
    session.close()
