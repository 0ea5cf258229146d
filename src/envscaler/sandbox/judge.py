"""`Judge`: check functions and expressions, run one after the other over states in one process of their own.

What they are to say, and of which states, is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Literal, Self

import msgspec

from envscaler.canonical import from_json, to_json
from envscaler.editing import Edit, EditError, edit
from envscaler.sandbox.clock import clock_us
from envscaler.sandbox.contract import DEFAULT_CLOCK, CheckOutcome, Limits
from envscaler.sandbox.inside.wire import Judge as JudgeRequest
from envscaler.sandbox.inside.wire import Judged, JudgeEdited, Reply, utf8
from envscaler.sandbox.session import death_fault, reply_fault, shortened
from envscaler.sandbox.traceless import leaves_nothing
from envscaler.sandbox.worker import Worker, WorkerDied
from envscaler.state import JsonValue, State

_TOGETHER = 64
"""Checks that one message carries at most."""
_EDITED_TOGETHER = 1_000
"""Runs of check functions that one message asks for: they have the time of one call."""
_decode = msgspec.json.Decoder(list[Judged]).decode
_decode_edited = msgspec.json.Decoder(list[list[Judged]]).decode


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
        self,
        sources: Sequence[str],
        *,
        initial_state: State,
        final_state: State,
        clock: str = DEFAULT_CLOCK,
        seed: int = 0,
    ) -> tuple[CheckOutcome, ...]:
        """As `Sandbox.check`, in this process.

        Args:
            seed: of the random streams that a check may draw from; with another one, one that does says other things.
        """
        initial, final = to_json(initial_state), to_json(final_state)
        return await self._judge(sources, "function", initial, final, clock_us(clock), seed)

    async def evaluate(
        self, expressions: Sequence[str], state: JsonValue, *, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """As `Sandbox.evaluate`, in this process."""
        return await self._judge(expressions, "expression", b"null", to_json(state), clock_us(clock))

    async def check_edited(
        self,
        sources: Sequence[str],
        *,
        initial_state: State,
        final_state: State,
        edits: Sequence[Sequence[Edit]],
        clock: str = DEFAULT_CLOCK,
    ) -> tuple[tuple[CheckOutcome, ...], ...]:
        """As `check` for many final states that differ from one in a few places, at a fraction of the cost.

        Args:
            edits: for each state, what is changed in `final_state` (`envscaler.editing`).

        Returns:
            For each state one outcome a source, in order; where its edits cannot be made there is no such state, and no
            value.
        """
        initial, final, clock_ = to_json(initial_state), to_json(final_state), clock_us(clock)
        plain = [place for place, source in enumerate(sources) if leaves_nothing(source)]
        size = max(1, _EDITED_TOGETHER // max(1, len(plain)))
        rows: list[list[CheckOutcome]] = []
        for start in range(0, len(edits), size):
            chosen = edits[start : start + size]
            quick = await self._quickly([sources[place] for place in plain], initial, final, chosen, clock_)
            for number, changes in enumerate(chosen):
                row = dict(zip(plain, quick[number], strict=True)) if quick is not None else {}
                if any(outcome.mutated for outcome in row.values()):
                    row = {}
                left = [place for place in range(len(sources)) if place not in row]
                if left:
                    said = await self._slowly([sources[n] for n in left], initial, final, changes, clock_)
                    row |= dict(zip(left, said, strict=True))
                rows.append([row[place] for place in range(len(sources))])
        return tuple(map(tuple, rows))

    async def _slowly(
        self, sources: Sequence[str], initial: bytes, final: bytes, changes: Sequence[Edit], clock: int
    ) -> Sequence[CheckOutcome]:
        try:
            text = to_json(edit(from_json(final), changes))
        except EditError as error:
            return [CheckOutcome(None, f"EditError: {error}", False)] * len(sources)
        return await self._judge(sources, "function", initial, text, clock)

    async def _quickly(
        self, sources: Sequence[str], initial: bytes, final: bytes, edits: Sequence[Sequence[Edit]], clock: int
    ) -> list[list[CheckOutcome]] | None:
        """What functions that leave nothing behind say of many states; None where that cannot be had all at once."""
        if not sources:
            return [[]] * len(edits)
        texts = tuple(map(utf8, sources))
        async with self._lock:
            if self._worker is None or self._worker.dead:
                self.close()
                self._worker = await self._fork()
            else:
                self._worker.take()
            worker = self._worker
            try:
                reply = await worker.ask(
                    JudgeEdited(worker.next_serial(), texts, initial, final, to_json(list(edits)), clock)
                )
            except WorkerDied:
                return None
            finally:
                worker.rest()
        try:
            said = _decode_edited(reply.result) if reply.kind == "ok" else []
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            said = []
        if len(said) != len(edits) or any(len(row) != len(sources) for row in said):
            self.close()
            return None
        return [[_outcome(one, self._limits) for one in row] for row in said]

    async def _judge(
        self,
        sources: Sequence[str],
        form: Literal["function", "expression"],
        initial: bytes,
        final: bytes,
        clock: int,
        seed: int = 0,
    ) -> tuple[CheckOutcome, ...]:
        async with self._lock:
            if self._worker is not None:
                self._worker.take()
            try:
                return await self._judged(sources, form, initial, final, clock, seed)
            finally:
                if self._worker is not None:
                    self._worker.rest()

    async def _judged(
        self,
        sources: Sequence[str],
        form: Literal["function", "expression"],
        initial: bytes,
        final: bytes,
        clock: int,
        seed: int,
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
                reply = await worker.ask(JudgeRequest(worker.next_serial(), form, texts, initial, final, clock, seed))
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
    return [_outcome(one, limits) for one in judged]


def _outcome(judged: Judged, limits: Limits) -> CheckOutcome:
    error = None if judged.value is not None else shortened(judged.error, limits)
    return CheckOutcome(judged.value, error, judged.mutated)
