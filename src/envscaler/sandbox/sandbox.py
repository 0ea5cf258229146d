"""`Sandbox`: opens sessions of programs and judges states with check functions, all in worker processes."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from envscaler.sandbox.contract import DEFAULT_CLOCK, CheckOutcome, IsolationReport, Limits, Program
from envscaler.sandbox.session import Session
from envscaler.state import JsonValue, State


class Sandbox:
    """Runs generated code in worker processes. An async context manager; one event loop."""

    def __init__(self, limits: Limits = Limits(), workers: int | None = None) -> None:
        self.limits = limits

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    @property
    def isolation(self) -> IsolationReport:
        """How well workers are isolated here; known once the sandbox is entered."""
        raise NotImplementedError

    async def open(self, program: Program, state: State, *, seed: int = 0, clock: str = DEFAULT_CLOCK) -> Session:
        """Start a session of `program` from a copy of `state`.

        Raises:
            ProgramError: if the program cannot be loaded or built, with exception type, message and line.
            SandboxError: if no worker can be started.
        """
        raise NotImplementedError

    async def check(
        self, sources: Sequence[str], *, initial_state: State, final_state: State, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """Run check functions over a final state: one outcome per source, in order."""
        raise NotImplementedError

    async def evaluate(
        self, expressions: Sequence[str], state: JsonValue, *, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """Evaluate Python expressions over the name `state`, such as `Rule.predicate`."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """End every session and worker; idempotent."""
        raise NotImplementedError
