"""`local_work`: what this machine does for an environment between questions, for the earlier begun ones first.

Without an order all environments begun together would be tried at the same pace, and none would come to its test
calls, of which an endpoint can be given very many, before all of them do.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from itertools import count


class Turns:
    """Lets few environments at a time have this machine work for them."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        """A heap, by place and then by number."""
        self._number = count()

    @contextmanager
    def of(self, place: float) -> Iterator[None]:
        """Within it and in tasks begun there `local_work` waits for a turn of this place: the lower, the sooner."""
        token = _own.set((self, place))
        try:
            yield
        finally:
            _own.reset(token)

    async def _enter(self, place: float) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (place, next(self._number), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._leave()  # it came in the moment in which it was no longer wanted
            raise

    def _leave(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


_own: ContextVar[tuple[Turns, float] | None] = ContextVar("turns", default=None)


@asynccontextmanager
async def local_work() -> AsyncIterator[None]:
    """The time of some work in which nobody is asked; there must be no other such within it."""
    own = _own.get()
    if own is None:
        yield
        return
    turns, place = own
    await turns._enter(place)
    try:
        yield
    finally:
        turns._leave()
