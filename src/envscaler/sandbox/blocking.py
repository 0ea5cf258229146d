"""`BlockingSandbox` and `BlockingSession`: the sandbox for code that does not await, with or without a running loop."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from envscaler.sandbox.contract import (
    DEFAULT_CLOCK,
    Arguments,
    CheckOutcome,
    IsolationReport,
    Limits,
    Outcome,
    Program,
    Snapshot,
)
from envscaler.state import JsonValue, State


class BlockingSession:
    """As `Session`, blocking."""

    @property
    def digest(self) -> str:
        raise NotImplementedError

    def call(self, name: str, arguments: Arguments) -> Outcome:
        raise NotImplementedError

    def state(self) -> State:
        raise NotImplementedError

    def snapshot(self) -> Snapshot:
        raise NotImplementedError

    def restore(self, snapshot: Snapshot) -> None:
        raise NotImplementedError

    def fork(self) -> BlockingSession:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class BlockingSandbox:
    """As `Sandbox`, blocking. A context manager; it may also be used without `with` and closed by `close`."""

    def __init__(self, limits: Limits = Limits(), workers: int | None = None) -> None:
        self.limits = limits

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    @property
    def isolation(self) -> IsolationReport:
        raise NotImplementedError

    def open(self, program: Program, state: State, *, seed: int = 0, clock: str = DEFAULT_CLOCK) -> BlockingSession:
        raise NotImplementedError

    def check(
        self, sources: Sequence[str], *, initial_state: State, final_state: State, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        raise NotImplementedError

    def evaluate(
        self, expressions: Sequence[str], state: JsonValue, *, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
