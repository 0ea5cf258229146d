"""`BlockingSandbox` and `BlockingSession`: the sandbox for code that does not await, with or without a running loop.

They run the asynchronous ones on an event loop in a thread of their own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from envscaler.errors import SandboxError
from envscaler.sandbox.contract import (
    DEFAULT_CLOCK,
    Arguments,
    CheckOutcome,
    Isolation,
    IsolationReport,
    Limits,
    Outcome,
    Program,
    Snapshot,
)
from envscaler.sandbox.sandbox import Sandbox
from envscaler.sandbox.session import Session
from envscaler.state import JsonValue, State

ValueT = TypeVar("ValueT")


class _LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._stopped = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="envscaler-sandbox", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, ValueT]) -> ValueT:
        """Run `work` there and wait for it; an interruption here cancels it there.

        Raises:
            SandboxError: where it could only wait for ever.
        """
        reason = self._why_not()
        if reason is not None:
            work.close()
            raise SandboxError(reason)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _why_not(self) -> str | None:
        if self._pid != os.getpid():
            return "the sandbox was opened before this process was forked; open one in this process"
        return "the sandbox is closed" if self._stopped else None

    def stop(self, last: Coroutine[Any, Any, None]) -> None:
        """Run `last`, then end the loop and the thread."""
        if self._why_not() is not None:
            last.close()
            return
        self._stopped = True
        if threading.current_thread() is self._thread:
            # The collector came by here, and what it collects closes its sandbox: nobody may wait for himself.
            self._loop.create_task(self._ending(last))
            return
        asyncio.run_coroutine_threadsafe(self._ending(last), self._loop)
        self._thread.join()
        self._loop.close()

    async def _ending(self, last: Coroutine[Any, Any, None]) -> None:
        try:
            await last
            await self._loop.shutdown_default_executor()
        finally:
            self._loop.stop()


class BlockingSession:
    """As `Session`, blocking. `BlockingSandbox.open` makes it."""

    def __init__(self, session: Session, thread: _LoopThread) -> None:
        self._session = session
        self._thread = thread

    @property
    def digest(self) -> str:
        """Digest of the present state."""
        return self._session.digest

    def call(self, name: str, arguments: Arguments) -> Outcome:
        """As `Session.call`."""
        return self._run(self._session.call(name, arguments))

    def state(self) -> State:
        """As `Session.state`."""
        return self._run(self._session.state())

    def snapshot(self) -> Snapshot:
        """As `Session.snapshot`."""
        return self._run(self._session.snapshot())

    def restore(self, snapshot: Snapshot) -> None:
        """As `Session.restore`."""
        self._run(self._session.restore(snapshot))

    def fork(self) -> BlockingSession:
        """As `Session.fork`."""
        return BlockingSession(self._thread.run(self._session.fork()), self._thread)

    def close(self) -> None:
        """End the worker; idempotent, also after the sandbox was closed."""
        if not self._session.closed:
            self._thread.run(self._session.close())

    def _run(self, work: Coroutine[Any, Any, ValueT]) -> ValueT:
        if not self._session.in_process:
            return self._thread.run(work)
        if self._session.busy:
            work.close()
            raise SandboxError("another thread is using the session")
        # Nothing there ever waits, so that the first step is the last; a switch of threads costs more than the call.
        try:
            work.send(None)
        except StopIteration as done:
            return cast(ValueT, done.value)
        work.close()
        raise AssertionError("a session in this process waits")


class BlockingSandbox:
    """As `Sandbox`, blocking: a context manager, or open from the first use until `close`."""

    def __init__(
        self, limits: Limits | None = None, workers: int | None = None, *, isolation: Isolation = "default"
    ) -> None:
        self.limits = limits or Limits()
        self._workers = workers
        self.mode = isolation
        self._sandbox: Sandbox | None = None
        self._thread: _LoopThread | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._started()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def isolation(self) -> IsolationReport:
        """As `Sandbox.isolation`."""
        return self._started()[0].isolation

    def run(self, work: Callable[[Sandbox], Coroutine[Any, Any, ValueT]]) -> ValueT:
        """Carry out something that awaits, with the sandbox behind this one, and wait for it."""
        sandbox, thread = self._started()
        return thread.run(work(sandbox))

    def open(self, program: Program, state: State, *, seed: int = 0, clock: str = DEFAULT_CLOCK) -> BlockingSession:
        """As `Sandbox.open`."""
        sandbox, thread = self._started()
        return BlockingSession(thread.run(sandbox.open(program, state, seed=seed, clock=clock)), thread)

    def check(
        self, sources: Sequence[str], *, initial_state: State, final_state: State, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """As `Sandbox.check`."""
        sandbox, thread = self._started()
        return thread.run(sandbox.check(sources, initial_state=initial_state, final_state=final_state, clock=clock))

    def evaluate(
        self, expressions: Sequence[str], state: JsonValue, *, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """As `Sandbox.evaluate`."""
        sandbox, thread = self._started()
        return thread.run(sandbox.evaluate(expressions, state, clock=clock))

    def close(self) -> None:
        """End every session and worker; idempotent."""
        with self._lock:
            sandbox, self._sandbox = self._sandbox, None
            thread, self._thread = self._thread, None
        if sandbox is not None and thread is not None:
            thread.stop(sandbox.aclose())

    def _started(self) -> tuple[Sandbox, _LoopThread]:
        with self._lock:
            if self._sandbox is None or self._thread is None:
                thread = _LoopThread()
                sandbox = Sandbox(self.limits, self._workers, isolation=self.mode)
                try:
                    thread.run(sandbox.__aenter__())
                except BaseException:
                    thread.stop(sandbox.aclose())
                    raise
                self._sandbox, self._thread = sandbox, thread
            return self._sandbox, self._thread
