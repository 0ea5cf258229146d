"""`bounded_map`: many units of work side by side, in order; and `Progress`, which is told how far they are.

What a unit does, and what happens when it fails, is its function's business.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")

_LOOK_EVERY_S = 0.1


class Progress(Protocol):
    """Told by long runs how far they are; what it shows is its own business. Methods return at once."""

    def stage(self, name: str, total: int | None) -> None:
        """A stage begins, or its number of units is now known better; None: unknown."""
        ...

    def advance(self, stage: str, n: int = 1) -> None:
        """`n` more units of a stage are done, whatever became of them."""
        ...

    def note(self, text: str) -> None:
        """Something a person would want to know now, in one sentence."""
        ...


class NullProgress:
    """Shows nothing."""

    def stage(self, name: str, total: int | None) -> None:
        return None

    def advance(self, stage: str, n: int = 1) -> None:
        return None

    def note(self, text: str) -> None:
        return None


async def bounded_map(
    function: Callable[[In], Awaitable[Out]],
    inputs: Iterable[In] | AsyncIterable[In],
    *,
    limit: int | Callable[[], int],
    window: int | None = None,
) -> AsyncGenerator[Out, None]:
    """Yield `function(x)` for each input in input order, with at most `limit` calls running.

    Nothing outlives the generator: when a call raises, when the consumer is cancelled or closes the generator,
    the calls in flight are cancelled and awaited. A consumer that may leave early closes it with
    `contextlib.aclosing`.

    Args:
        limit: calls that run side by side at most; a function is asked again and again, as it may change at any time,
            and one call may always run.
        window: inputs taken at most beyond the last result yielded, so that a slow first call holds up only its own
            result while memory stays bounded; eight times `limit` if None, and then a limit that changes needs one.

    Raises:
        Exception: what a call raised, as it is, as soon as it raises.
    """
    if callable(limit):
        if window is None:
            raise ValueError("a limit that changes needs a window")
        room, look_every_s = limit, _LOOK_EVERY_S
    else:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        room, look_every_s = _always(limit), None
        window = max(limit, 8 * limit if window is None else window)
    source = _stream(inputs)
    ordered: deque[asyncio.Task[Out]] = deque()
    running: set[asyncio.Task[Out]] = set()
    pull: asyncio.Task[tuple[In] | None] | None = None
    exhausted = False
    try:
        while True:
            while ordered and ordered[0].done():
                yield ordered.popleft().result()
            more = pull is None and not exhausted and len(ordered) < window
            full = more and len(running) >= max(1, room())
            if more and not full:
                pull = asyncio.create_task(_next(source))
            if pull is None and not ordered:
                return
            waiting: set[asyncio.Task[Any]] = {*running, pull} if pull is not None else {*running}
            # Whoever changes the limit need not say so: it is looked at from time to time.
            wait_s = look_every_s if full else None
            done, _ = await asyncio.wait(waiting, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task is not pull:
                    running.discard(task)
                    task.result()
            if pull is not None and pull in done:
                taken, pull = pull.result(), None
                if taken is None:
                    exhausted = True
                else:
                    call = asyncio.create_task(_coroutine(function, taken[0]))
                    ordered.append(call)
                    running.add(call)
    finally:
        left: list[asyncio.Task[Any]] = [task for task in (*running, pull) if task is not None]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await source.aclose()


def _always(limit: int) -> Callable[[], int]:
    return lambda: limit


async def _coroutine(function: Callable[[In], Awaitable[Out]], value: In) -> Out:
    return await function(value)


async def _next(source: AsyncIterator[In]) -> tuple[In] | None:
    try:
        return (await anext(source),)
    except StopAsyncIteration:
        return None


async def _stream(inputs: Iterable[In] | AsyncIterable[In]) -> AsyncGenerator[In, None]:
    if isinstance(inputs, AsyncIterable):
        try:
            async for value in inputs:
                yield value
        finally:
            if isinstance(inputs, AsyncGenerator):
                await inputs.aclose()
    else:
        for value in inputs:
            yield value
