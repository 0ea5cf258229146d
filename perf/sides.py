"""`Side`: one way of running environments; all sides make the same calls, so that their costs can be compared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from envscaler.canonical import canonical, to_json
from envscaler.sandbox import Arguments, Isolation, Limits, Sandbox
from envscaler.sandbox.contract import Home
from perf.baseline import AuthorsWay, instance_of
from perf.workloads import Workload


class Opened(Protocol):
    """One environment, reset."""

    async def call(self, name: str, arguments: Arguments) -> object: ...

    async def close(self) -> None: ...


class Opener(Protocol):
    """Opens environments in one way."""

    async def open(self, workload: Workload) -> Opened: ...


@dataclass(frozen=True)
class Side:
    """One way, by name."""

    name: str
    isolation: Isolation | None = None
    """Mode of the sandbox; None where there is none."""
    bare: bool = False
    """Without the baseline's copies and comparison."""

    @asynccontextmanager
    async def ready(self, sessions: int = 1) -> AsyncIterator[Opener]:
        """What opens environments, `sessions` at once."""
        if self.isolation is None:
            yield _Here(Bare if self.bare else AuthorsWay)
            return
        async with Sandbox(Limits(max_live=sessions + 1), isolation=self.isolation) as sandbox:
            yield _InSandbox(sandbox, self.isolation)


BASELINE = Side("baseline: copy and compare")
BARE = Side("in process, bare call", bare=True)
IN_PROCESS = Side("in process, digest and rollback", "in-process")
SHARED = Side("shared worker", "shared")
HARDENED = Side("hardened (default)", "default")
"""As hardened as this machine allows; the first line of the run tells."""
SIDES = (BASELINE, BARE, IN_PROCESS, SHARED, HARDENED)


class Bare:
    """The method itself and the JSON text of its result: no digest, no rollback."""

    def __init__(self, workload: Workload) -> None:
        self._instance = instance_of(workload)

    async def call(self, name: str, arguments: Arguments) -> bytes:
        try:
            return to_json(canonical(getattr(self._instance, name)(**arguments)))
        except Exception as error:  # noqa: BLE001 - a tool that raises is an observation
            return str(error).encode()

    async def close(self) -> None:
        """Nothing is held."""


class _Here:
    def __init__(self, make: Callable[[Workload], Opened]) -> None:
        self._make = make

    async def open(self, workload: Workload) -> Opened:
        return self._make(workload)


class _InSandbox:
    def __init__(self, sandbox: Sandbox, isolation: Isolation) -> None:
        self._sandbox = sandbox
        self._home: Home | None = isolation if isolation in ("shared", "in-process") else None
        self._settled: set[str] = set()

    async def open(self, workload: Workload) -> Opened:
        program = workload.program
        if self._home is not None and program.digest not in self._settled:
            self._sandbox.settle(program, self._home)
            self._settled.add(program.digest)
        return await self._sandbox.open(program, workload.state)
