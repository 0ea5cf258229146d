"""`Judge`: check functions and expressions, run one after the other over states in one process of their own.

What they are to say, and of which states, is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Literal, Self

import msgspec

from envscaler.canonical import to_json
from envscaler.sandbox.clock import clock_us
from envscaler.sandbox.contract import DEFAULT_CLOCK, CheckOutcome, Limits
from envscaler.sandbox.inside.wire import Judge as JudgeRequest
from envscaler.sandbox.inside.wire import Judged, Reply, utf8
from envscaler.sandbox.session import death_fault, reply_fault, shortened
from envscaler.sandbox.traceless import leaves_nothing
from envscaler.sandbox.worker import Worker, WorkerDied
from envscaler.state import JsonValue, State

_TOGETHER = 64
"""Checks that one message carries at most."""
_decode = msgspec.json.Decoder(list[Judged]).decode


class Judge:
    """A process in which check functions run, started at the first; `Sandbox.judge` makes it.

    One that could leave something behind ends the process, so that no other meets it; so does a call in which one of
    them raised, gave no `bool` or wrote to what it was given.
    """

    def __init__(self, fork: Callable[[], Awaitable[Worker]], limits: Limits) -> None:
        self._fork = fork
        self._limits = limits
        self._lock = asyncio.Lock()
        self._worker: Worker | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; idempotent."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()

    async def check(
        self, sources: Sequence[str], *, initial_state: State, final_state: State, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """As `Sandbox.check`, in this process."""
        initial, final = to_json(initial_state), to_json(final_state)
        return await self._judge(sources, "function", initial, final, clock_us(clock))

    async def evaluate(
        self, expressions: Sequence[str], state: JsonValue, *, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """As `Sandbox.evaluate`, in this process."""
        return await self._judge(expressions, "expression", b"null", to_json(state), clock_us(clock))

    async def _judge(
        self, sources: Sequence[str], form: Literal["function", "expression"], initial: bytes, final: bytes, clock: int
    ) -> tuple[CheckOutcome, ...]:
        async with self._lock:
            if self._worker is not None:
                self._worker.take()
            try:
                return await self._judged(sources, form, initial, final, clock)
            finally:
                if self._worker is not None:
                    self._worker.rest()

    async def _judged(
        self, sources: Sequence[str], form: Literal["function", "expression"], initial: bytes, final: bytes, clock: int
    ) -> tuple[CheckOutcome, ...]:
        outcomes: list[CheckOutcome] = []
        deaths = singly = 0
        while len(outcomes) < len(sources):
            if self._worker is None or self._worker.dead:
                self.close()
                self._worker = await self._fork()
            worker = self._worker
            together = _harmless(sources[len(outcomes) :]) if len(outcomes) >= singly else 1
            chosen = sources[len(outcomes) : len(outcomes) + max(1, together)]
            texts = tuple(map(utf8, chosen))
            try:
                reply = await worker.ask(JudgeRequest(worker.next_serial(), form, texts, initial, final, clock))
            except WorkerDied as death:
                # A check that takes its worker with it must not take the checks after it.
                if len(chosen) > 1:
                    singly = len(outcomes) + len(chosen)
                    continue
                deaths += death.cause != "crowded"
                if death.cause in ("cpu", "memory") or deaths == 2:
                    outcomes.append(CheckOutcome(None, str(death_fault(death, self._limits)), False))
                    deaths = 0
                continue
            deaths = 0
            outcomes += _judgements(reply, len(chosen), self._limits)
            if not together:
                self.close()
        if any(outcome.error is not None or outcome.mutated for outcome in outcomes):
            self.close()
        return tuple(outcomes)


def _harmless(sources: Sequence[str]) -> int:
    """How many of the first ones can leave nothing behind, up to as many as go together."""
    return next((place for place, source in enumerate(sources[:_TOGETHER]) if not leaves_nothing(source)), _TOGETHER)


def _judgements(reply: Reply, count: int, limits: Limits) -> list[CheckOutcome]:
    fault = str(reply_fault(reply, limits)) or "it gave no answer"
    try:
        judged = _decode(reply.result) if reply.kind == "ok" else []
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        judged, fault = [], "it gave no answer"
    if len(judged) != count:
        return [CheckOutcome(None, fault, False)] * count
    return [
        CheckOutcome(one.value, None if one.value is not None else shortened(one.error, limits), one.mutated)
        for one in judged
    ]
