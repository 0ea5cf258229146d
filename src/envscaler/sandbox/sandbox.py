"""`Sandbox`: opens sessions of programs and judges states with check functions, all in worker processes.

What a session does once it is open, and how workers are started, is the business of the modules beside this one.
"""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self, get_args

from envscaler.canonical import to_json
from envscaler.errors import NotHardened, ProgramError, SandboxError, require_one_of
from envscaler.sandbox.clock import clock_us
from envscaler.sandbox.contract import (
    DEFAULT_CLOCK,
    CheckOutcome,
    Home,
    Isolation,
    IsolationReport,
    Limits,
    Program,
)
from envscaler.sandbox.fleet import Fleet
from envscaler.sandbox.in_process import InProcess
from envscaler.sandbox.inside import loader
from envscaler.sandbox.inside.wire import HEADER_BYTES
from envscaler.sandbox.judge import Judge
from envscaler.sandbox.nursery import ForkRefused, Nursery, WorkerT, program_fault, settings_of
from envscaler.sandbox.session import Beginning, Place, Session
from envscaler.sandbox.sharing import Pool, SharedWorker
from envscaler.sandbox.worker import Worker
from envscaler.state import JsonValue, State

_WATCH_EVERY_S = 0.25
_SPARES = 8
_ENVELOPE_BYTES = 64_000
"""What a frame may hold beside a result or a state: names, messages, digests."""


class Sandbox:
    """Runs generated code in worker processes. An async context manager, for one event loop.

    Args:
        limits: what one session may use, and all together.
        workers: zygotes to fork workers from; more than one helps only where very many sessions are opened at once.
        isolation: how far apart what runs is kept. `shared` and `in-process` change nothing by themselves but that
            check functions share a process that stays; which programs live elsewhere is said by `settle`.
    """

    def __init__(
        self, limits: Limits | None = None, workers: int | None = None, *, isolation: Isolation = "default"
    ) -> None:
        require_one_of("isolation", isolation, get_args(Isolation))
        self.limits = limits or Limits()
        self.mode = isolation
        self._settings = settings_of(self.limits)
        self._nursery_count = max(1, workers or 1)
        self._nurseries: list[Nursery] = []
        self._next_nursery = 0
        self.fleet = Fleet(self.limits)
        """Which workers are alive."""
        self._pool = Pool(lambda program: self._fork(program, SharedWorker), self.fleet.max_live)
        self._homes: dict[str, tuple[Home, types.CodeType | None]] = {}
        """By digest of the program; each in a process of its own where nothing is said."""
        self._judges: list[Judge] = []
        """Such as stay and are not at work."""
        self._spares: list[tuple[str, Worker]] = []
        """Workers that trials have left, with the digest of their program; the latest last."""
        self._slots = asyncio.Semaphore(self.limits.max_sessions)
        self._watcher: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._nurseries = [Nursery(self.limits) for _ in range(self._nursery_count)]
        try:
            for nursery in self._nurseries:
                await nursery.start()
            self._require_hardening()
        except BaseException:
            await self.aclose()
            raise
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every session and worker; idempotent."""
        self._judges.clear()
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
        nurseries, self._nurseries = self._nurseries, []
        for worker in self.fleet.live:
            worker.kill()
        self._spares.clear()
        for nursery in nurseries:
            await nursery.close()

    @property
    def closed(self) -> bool:
        """Whether it is not open, or no longer."""
        return not self._nurseries

    @property
    def isolation(self) -> IsolationReport:
        """How well workers are isolated here; known once the sandbox is entered.

        Raises:
            SandboxError: before that.
        """
        self._require_open()
        isolation = self._nurseries[0].isolation
        if self.fleet.max_bytes is None:
            return replace(isolation, missing=(*isolation.missing, "the memory of all workers together is not watched"))
        return isolation

    async def open(self, program: Program, state: State, *, seed: int = 0, clock: str = DEFAULT_CLOCK) -> Session:
        """Start a session of `program` from a copy of `state`.

        The instance is made as `Cls(state)`, else `Cls({})`, else `Cls()`; then each key of the state is set as an
        attribute. It waits while `Limits.max_sessions` sessions are open.

        Raises:
            ProgramError: if the program cannot be loaded or built, with exception type, message and line.
            SandboxError: if no worker can be started.
            NotJson: if `state` has no JSON form.
            ValueError: if `clock` is no ISO 8601 time.
        """
        return await self._opened(program, state, seed, clock, lambda: None)

    @asynccontextmanager
    async def trial(
        self, program: Program, state: State, *, seed: int = 0, clock: str = DEFAULT_CLOCK
    ) -> AsyncIterator[Session]:
        """As `open`, for the time of a `with`, at a tenth of the cost where trials of one program follow each other.

        A trial goes on in the worker that an earlier one of the same program has left alive. The program's module is
        executed anew, so only what a program hides in the standard library outlives a trial. An episode, and whatever
        looks for such things, is to use `open`.

        Raises:
            ProgramError, SandboxError, NotJson, ValueError: as `open`.
        """
        session = await self._opened(program, state, seed, clock, lambda: self._take_spare(program))
        try:
            yield session
        finally:
            self._keep_spare(program, session.release())
            await session.close()

    async def _opened(
        self, program: Program, state: State, seed: int, clock: str, spare: Callable[[], Worker | None]
    ) -> Session:
        beginning = Beginning(to_json(state), seed, clock_us(clock), 0)
        await self.admit()
        session = Session(self, program, beginning, spare())
        try:
            await session.start()
        except BaseException:
            await session.close()
            raise
        return session

    async def check(
        self, sources: Sequence[str], *, initial_state: State, final_state: State, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """Run check functions over a final state.

        Each source defines `check_func(final_state)` and may read the global `initial_state`; each gets copies of its
        own. They run in a process of their own, which shares nothing with any session.

        Returns:
            One outcome a source, in order.
        """
        async with self.borrow_judge() as judge:
            return await judge.check(sources, initial_state=initial_state, final_state=final_state, clock=clock)

    async def evaluate(
        self, expressions: Sequence[str], state: JsonValue, *, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """Evaluate Python expressions over the name `state`, such as `Rule.predicate`; otherwise as `check`."""
        async with self.borrow_judge() as judge:
            return await judge.evaluate(expressions, state, clock=clock)

    def judge(self) -> Judge:
        """A process for judging that serves several calls of `check` and `evaluate`; an async context manager."""
        self._require_open()
        return Judge(lambda: self._fork(None, Worker), self.limits)

    @asynccontextmanager
    async def borrow_judge(self) -> AsyncIterator[Judge]:
        """A process in which the checks of one episode run: one of their own, or one that stays (`shared`)."""
        self._require_open()
        if self.mode not in ("shared", "in-process"):
            async with self.judge() as judge:
                yield judge
            return
        judge = self._judges.pop() if self._judges else self.judge()
        try:
            yield judge
        except BaseException:
            judge.close()
            raise
        self._judges.append(judge)

    def settle(self, program: Program, home: Home) -> None:
        """Say where sessions of `program` are to run that are opened, or built again, from now on.

        `shared` is for programs that were seen to do the same there, `in-process` for those whose every letter is
        known; who says so is `env.homes`.

        Raises:
            ProgramError: if it is to run in this process and does not compile.
        """
        if home != "in-process":
            self._homes[program.digest] = (home, None)
            return
        try:
            code = loader.compiled(program.source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ProgramError(program_fault(type(error).__name__, str(error), loader.line_of(error))) from error
        self._homes[program.digest] = (home, code)

    # -- what sessions need ---------------------------------------------------------------------------------

    async def place_for(self, program: Program, *, alone: bool) -> tuple[Place, int]:
        """Where one more instance of `program` is to be built: a worker, taken, and the slot in it.

        Args:
            alone: not in a worker that others share.
        """
        home, code = self._homes.get(program.digest, ("own", None))
        if code is not None:
            return InProcess(code, self._settings), 0
        if home == "shared" and not alone:
            return await self._pool.place_for(program)
        return await self._fork(program, Worker), 0

    async def admit(self) -> None:
        """Wait for leave to open one more session."""
        self._require_open()
        await self._slots.acquire()

    def dismiss(self) -> None:
        """Give back the leave of a session that has been closed."""
        self._slots.release()

    def abandon(self, place: Place | None, slot: int) -> None:
        """End a session that was forgotten without being closed; from whatever thread the collector runs in."""

        def end() -> None:
            if place is not None:
                place.leave(slot)
            self._slots.release()

        if self._loop is not None:
            # A loop that is closed has taken its sockets, and with them the workers, along.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(end)

    # -- workers --------------------------------------------------------------------------------------------

    async def _fork(self, program: Program | None, kind: type[WorkerT]) -> WorkerT:
        limit = max(self.limits.max_output_bytes, self.limits.max_state_bytes)
        while True:
            await self.fleet.admit()
            try:
                self._require_open()
                nursery = self._nurseries[self._next_nursery % len(self._nurseries)]
                self._next_nursery += 1
                worker = await nursery.fork(program, HEADER_BYTES + limit + _ENVELOPE_BYTES, kind)
            except ForkRefused:
                self.fleet.refused()
                continue
            except BaseException:
                self.fleet.leave()
                raise
            self.fleet.board(worker)
            return worker

    def _take_spare(self, program: Program) -> Worker | None:
        for place in reversed(range(len(self._spares))):
            digest, worker = self._spares[place]
            if digest == program.digest:
                del self._spares[place]
                if not worker.dead:
                    worker.take()
                    return worker
                worker.kill()
        return None

    def _keep_spare(self, program: Program, worker: Worker | None) -> None:
        if worker is None or self.closed:
            return
        self._spares.append((program.digest, worker))
        if len(self._spares) > _SPARES:
            _, oldest = self._spares.pop(0)
            oldest.kill()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_EVERY_S)
            for worker in self.fleet.live:
                worker.watch(self.limits)
            self.fleet.weigh()

    def _require_hardening(self) -> None:
        isolation = self.isolation
        if self.mode == "required" and isolation.level != "hardened":
            missing = "; ".join(isolation.missing)
            raise NotHardened(
                f"generated code cannot be contained on this machine ({missing}), and --isolation required asks for "
                "it; run on Linux with seccomp, or without that option where the code is trusted"
            )

    def _require_open(self) -> None:
        if self.closed:
            raise SandboxError("the sandbox is not open: use it in `async with`")
