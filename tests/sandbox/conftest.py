"""A sandbox for the tests that need no event loop, and programs to run in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from envscaler.sandbox import BlockingSandbox, Limits, Program

if TYPE_CHECKING:
    from .hostile import Bait

QUICK = Limits(cpu_s=0.3, cpu_kill_s=0.8, wall_s=2.5, memory_mb=256, max_output_bytes=100_000, max_state_bytes=400_000)
"""Limits under which a test of a runaway program takes a second."""

LEDGER = Program(
    source='''
import datetime
import random
import time
import uuid

JOURNAL = []


class Ledger:
    kinds = ["cash"]

    def __init__(self, init_config: dict):
        self.accounts = init_config.get("accounts", {})
        self.tags = set(init_config.get("tags", []))
        self.last = None

    def open_account(self, owner: str, amount: int = 0):
        key = str(uuid.uuid4())
        self.accounts[key] = {"owner": owner, "amount": amount, "opened": datetime.datetime.now().isoformat()}
        self.last = self.accounts[key]
        JOURNAL.append(key)
        return {"success": True, "id": key}

    def deposit(self, owner: str, amount: int):
        for account in self.accounts.values():
            if account["owner"] == owner:
                account["amount"] += amount
                return {"success": True, "amount": account["amount"]}
        return {"success": False, "error": "no such owner"}

    def tag(self, word: str):
        self.tags.add(word)
        return len(self.tags)

    def raise_last(self, amount: int):
        """Works through an object that two attributes share."""
        if self.last is None:
            return {"success": False}
        self.last["amount"] += amount
        return {"success": True}

    def draw(self):
        return [random.random(), time.time(), random.randrange(10**9)]

    def list_accounts(self):
        return list(self.accounts.values())

    def journal(self):
        return len(JOURNAL)

    def wreck(self):
        self.accounts.clear()
        self.tags.clear()
        self.last = "wrecked"
        raise ValueError("wrecked")

    def _secret(self):
        return "private"
''',
    class_name="Ledger",
)


def program_of(body: str, class_name: str = "Env") -> Program:
    """A program whose class has the methods in `body`, indented by four."""
    return Program(
        source=f"class {class_name}:\n    def __init__(self, init_config):\n        self.n = 0\n{body}",
        class_name=class_name,
    )


@pytest.fixture(scope="session")
def box() -> Iterator[BlockingSandbox]:
    with BlockingSandbox(QUICK) as sandbox:
        yield sandbox


@pytest.fixture(scope="module", params=["default", "portable"])
def guarded(request: pytest.FixtureRequest) -> Iterator[BlockingSandbox]:
    """A sandbox to attack, with and without the kernel's help."""
    from .hostile import guarded_sandbox

    with guarded_sandbox(portable=request.param == "portable") as sandbox:
        yield sandbox


@pytest.fixture
def bait() -> Iterator[Bait]:
    """What an attack could reach."""
    from .hostile import laid_bait

    with laid_bait() as laid:
        yield laid


@pytest.fixture
def prints_little(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """For tests that print next to nothing, nor does anything that they start."""
    yield
    printed = capfd.readouterr()
    assert len(printed.out) + len(printed.err) < 1000
