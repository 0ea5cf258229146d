"""Runs one attack between sessions that must not notice, and looks afterwards at everything that it could have reached.

Which attacks there are is the business of the tests and of `attacks`.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from envscaler.errors import SandboxError
from envscaler.sandbox import BlockingSandbox, BlockingSession, Outcome, Program
from envscaler.sandbox.memory import Resident

from .conftest import LEDGER, QUICK
from .processes import sandbox_processes

SECRET = "the-secret-of-the-host"
_GROWTH_BYTES = 64 << 20
_CHECK = "def check_func(s): return len(s) == 1 and isinstance(s, dict) and sorted(s) == ['a']"


class Bait:
    """What an attack could reach: a folder open to every user, with a secret in it, and a port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "secret.txt").write_text(SECRET)
        folder.chmod(0o777)
        (folder / "secret.txt").chmod(0o644)
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def fill(self, source: str) -> str:
        # The secret backwards: a program that looks for it must not find its own text.
        texts = {"@CANARY@": str(self.folder), "@PORT@": str(self.port), "@TERCES@": SECRET[::-1]}
        for mark, text in texts.items():
            source = source.replace(mark, text)
        return source

    def close(self) -> None:
        self._listener.close()

    def untouched(self) -> bool:
        secret = self.folder / "secret.txt"
        return (
            self.connections == 0
            and [path.name for path in self.folder.iterdir()] == ["secret.txt"]
            and secret.read_text() == SECRET
            and stat.S_IMODE(secret.stat().st_mode) == 0o644
        )


@contextmanager
def laid_bait() -> Iterator[Bait]:
    """Bait in a folder of its own."""
    # Not pytest's: its parents are closed to other users, which would contain what the sandbox has to.
    folder = Path(tempfile.mkdtemp(prefix="envscaler-bait-"))
    made = Bait(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder)


@contextmanager
def portable_sandbox() -> Iterator[BlockingSandbox]:
    """A sandbox on what is, to it, a system without seccomp and Landlock."""
    confined = Path(__file__).parents[1] / "confined.py"
    python = sys.executable
    with tempfile.TemporaryDirectory(prefix="envscaler-portable-") as folder:
        wrapper = Path(folder) / "python"
        lacking = "--without seccomp --without landlock"
        wrapper.write_text(f'#!/bin/sh\nexec "{python}" -P "{confined}" {lacking} -- "{python}" "$@"\n')
        wrapper.chmod(0o755)
        sys.executable = str(wrapper)
        try:
            with BlockingSandbox(QUICK) as sandbox:
                assert sandbox.isolation.level == "portable"
                yield sandbox
        finally:
            sys.executable = python


@contextmanager
def guarded_sandbox(*, portable: bool = False) -> Iterator[BlockingSandbox]:
    """A sandbox whose parent has a secret in its environment and in its memory."""
    os.environ["ENVSCALER_TEST_SECRET"] = SECRET
    try:
        with portable_sandbox() if portable else BlockingSandbox(QUICK) as sandbox:
            yield sandbox
    finally:
        del os.environ["ENVSCALER_TEST_SECRET"]


class Bystander:
    """An ordinary session of another program, opened before an attack and used after it."""

    def __init__(self, sandbox: BlockingSandbox) -> None:
        self._sandbox = sandbox
        self._session = sandbox.open(LEDGER, {"accounts": {"a": {"owner": "Ada", "amount": 1}}}, seed=3)
        self._session.call("deposit", {"owner": "Ada", "amount": 1})
        self._digest = self._session.digest

    def has_noticed_nothing(self) -> None:
        """Assert that it, and a new session with the same calls, do what they always do."""
        assert self._session.digest == self._digest
        assert self._session.call("list_accounts", {}).result == [{"owner": "Ada", "amount": 2}]
        again = Bystander(self._sandbox)
        assert again._digest == self._digest
        drawn = [session._session.call("draw", {}) for session in (self, again)]
        assert drawn[0].fault is None
        again._session.call("list_accounts", {})
        assert [len(outcome.result) for outcome in drawn] == [3, 3]
        again.close()
        outcome = self._sandbox.check([_CHECK], initial_state={}, final_state={"a": 1})[0]
        assert (outcome.value, outcome.error) == (True, None)

    def close(self) -> None:
        self._session.close()


def need(sandbox: BlockingSandbox, *, kernel: bool) -> None:
    """Skip what only a hardened sandbox contains, where there is none."""
    if kernel and sandbox.isolation.level != "hardened":
        pytest.skip(f"needs a hardened sandbox; missing: {', '.join(sandbox.isolation.missing)}")


def attack(sandbox: BlockingSandbox, bait: Bait, source: str) -> tuple[Outcome, BlockingSession]:
    """Run the method `attack` of a program; return its outcome and its session, which is closed.

    Raises:
        AssertionError: if anybody could notice.
    """
    program = Program(bait.fill(source), "Env")
    bystander = Bystander(sandbox)
    before = _probed(sandbox, program)
    processes = sandbox_processes()
    memory = Resident.of(os.getpid())

    session = sandbox.open(program, {"items": {}})
    started = time.monotonic()
    outcome = session.call("attack", {})
    assert time.monotonic() - started < 4 * QUICK.wall_s

    assert "PWNED" not in repr(outcome)
    assert SECRET not in repr(outcome)
    assert len(repr(outcome)) < 3 * QUICK.max_output_bytes
    try:
        assert SECRET not in repr(session.state())
        if before is not None:
            session.call("probe", {})
    except SandboxError:
        pass  # what it did to its own session is its own affair
    bystander.has_noticed_nothing()
    assert _probed(sandbox, program) == before
    bystander.close()
    session.close()
    time.sleep(0.05)
    assert bait.untouched()
    assert len(sandbox_processes() - processes) <= 1, "a process was left behind"
    if memory is not None:
        assert Resident.of(os.getpid()).beyond(memory) < _GROWTH_BYTES  # type: ignore[union-attr]
    return outcome, session


def _probed(sandbox: BlockingSandbox, program: Program) -> Outcome | None:
    """What a new session of the program looks like to itself; None if it does not look."""
    if "def probe" not in program.source:
        return None
    fresh = sandbox.open(program, {"items": {}})
    outcome = fresh.call("probe", {})
    fresh.close()
    return outcome
