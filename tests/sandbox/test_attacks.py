"""What the programs in `attacks` try is contained: the kernel, the conversation, values, leavings, the interpreter."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator

import pytest

from envscaler.sandbox import BlockingSandbox, Program
from envscaler.sandbox.inside.seccomp import _NUMBERS, _NUMBERS_WITHOUT_EXEC, _NUMBERS_WITHOUT_FLAGS

from .attacks import frames, kernel, machine_code, objects, remains, tampering
from .attacks.texts import programs
from .hostile import Bait, attack, guarded_sandbox, need
from .processes import living

ATTACKS = {
    f"{module.__name__.rpartition('.')[2]}: {name}": text
    for module in (kernel, machine_code, frames, objects, remains, tampering)
    for name, text in programs(module).items()
}
UNFILTERED = {335, 336} if platform.machine() == "x86_64" else set()
"""uretprobe and uprobe: newer kernels let no filter see them, and end whoever calls them outside of a probe."""
NEEDS_KERNEL = {
    *(name for name in ATTACKS if name.startswith(("kernel: ", "machine_code: "))),
    "remains: leaves a weak reference that calls",
}


@pytest.fixture(scope="module", params=["default", pytest.param("portable", marks=pytest.mark.slow)])
def guarded(request: pytest.FixtureRequest) -> Iterator[BlockingSandbox]:
    with guarded_sandbox(portable=request.param == "portable") as sandbox:
        yield sandbox


@pytest.mark.usefixtures("prints_little")
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_contained(guarded: BlockingSandbox, bait: Bait, name: str) -> None:
    need(guarded, kernel=name in NEEDS_KERNEL)
    attack(guarded, bait, ATTACKS[name])


def test_every_system_call_that_is_not_allowed_is_refused(guarded: BlockingSandbox) -> None:
    need(guarded, kernel=True)
    column = ["x86_64", "aarch64"].index(platform.machine())
    named = {**_NUMBERS, **_NUMBERS_WITHOUT_EXEC, **_NUMBERS_WITHOUT_FLAGS}
    allowed = {numbers[column] for numbers in named.values()}
    refused = [number for number in range(1024) if number not in allowed | UNFILTERED]
    source = f"""
import ctypes
class Env:
    def attack(self):
        libc = ctypes.CDLL(None, use_errno=True)
        passed = []
        for number in {refused}:
            ctypes.set_errno(0)
            if libc.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1:
                passed.append(number)
        return passed
"""
    session = guarded.open(Program(source, "Env"), {})
    outcome = session.call("attack", {})
    assert (outcome.result, outcome.fault) == ([], None)
    session.close()


@pytest.mark.parametrize(
    "name",
    ["frames: answers itself and works on", "remains: sets an alarm that never ends"],
)
def test_a_worker_that_works_unasked_is_ended_and_its_session_goes_on(guarded: BlockingSandbox, name: str) -> None:
    session = guarded.open(Program(ATTACKS[name], "Env"), {})
    bystander = guarded.open(Program(ATTACKS[name], "Env"), {})
    before = bystander.call("probe", {})
    assert session.call("attack", {}).fault is None
    worker = session._session.worker
    assert worker is not None
    for _ in range(400):
        if not living({worker.pid}):
            break
        time.sleep(0.05)
    assert not living({worker.pid})
    resting = bystander._session.worker
    assert resting is not None
    assert living({resting.pid}), "one that rests is left alone"
    assert guarded.open(Program(ATTACKS[name], "Env"), {}).call("probe", {}) == before
    session.close()
    bystander.close()


def test_a_request_that_nobody_reads_ends_with_its_time(guarded: BlockingSandbox) -> None:
    session = guarded.open(Program(ATTACKS["frames: answers itself and sleeps"], "Env"), {})
    assert session.call("attack", {}).result == "forged"
    # More than a socket holds, so that sending it waits for a reader.
    outcome = session.call("probe", {"text": "x" * 3_000_000})
    assert outcome.fault is not None
    assert outcome.fault.kind == "timeout"
    session.close()
