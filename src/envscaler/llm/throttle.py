"""`Throttle`: how many requests one endpoint is given at once: fewer when it is overloaded, more while that pays.

What counts as overload is said by whoever sends; when a single request is tried again is `transport`'s business.

Those who ask on behalf of somebody (`on_behalf_of`) are served in the order of their places, all others after them.

It works in rounds, each of about as many requests as are allowed at once. A round in which many were turned away makes
the number smaller by as much. One without such, in which others had to wait, makes it larger, and the next round shows
whether more was answered in the same time (requests at once ÷ mean latency); if not, it goes back and rests.

A request is turned away much sooner than it would be answered. Its slot is then left empty for about as long as an
answer takes: else the few that are too many would be turned away again and again, and pass for most of the round.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from types import TracebackType
from typing import Any, Literal, Self

BEGIN = 16
"""Requests at once to begin with, where nothing else is said."""
MOST = 1024
"""Requests at once at most, where nothing else is said."""
_FAST, _SLOW = 2.0, 1.125
"""By what the number grows: at first, and after it once had to shrink or growing did not pay."""
_PAYS = 0.25
"""Share of the growth that has to be seen in what is answered."""
_TOLERATED = 0.1
"""Share of requests turned away from which on the number shrinks."""
_LEAST_ROUND = 8
_UNKNOWN_LATENCY_S = 1.0
_REST_ROUNDS = 8


class Behalf:
    """Somebody on whose behalf requests are made, with a place among the others."""

    def __init__(self, place: float) -> None:
        """
        Args:
            place: the lower, the sooner requests get a slot where others wait as well.
        """
        self.place = place
        self.asking = 0
        """Requests that have a slot, or wait for one."""


_behalf: ContextVar[Behalf | None] = ContextVar("behalf", default=None)


@contextmanager
def on_behalf_of(somebody: Behalf) -> Iterator[None]:
    """Within it, and in tasks begun within it, requests are made on behalf of `somebody`."""
    token = _behalf.set(somebody)
    try:
        yield
    finally:
        _behalf.reset(token)


class Throttle:
    """Slots for requests to one endpoint, given in the order of places, then that in which they are asked for."""

    def __init__(
        self,
        most: int | None,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[Any]],
        random: Callable[[], float],
    ) -> None:
        """
        Args:
            most: requests at once at most, with which it begins; None: found out from 16 on, up to 1,024.
        """
        self.most = MOST if most is None else most
        self.limit = min(BEGIN, self.most) if most is None else most
        """Requests at once that are allowed now."""
        self.peak = 0
        """Most requests that were at work at once."""
        self._clock = clock
        self._sleep = sleep
        self._random = random
        self._at_work = 0
        self._waiting: list[tuple[float, int, asyncio.Future[float]]] = []
        """A heap, by place and then by number."""
        self._number = count()
        self._held_until = -math.inf
        self._empty_until: list[float] = []
        """A heap: until when each of some slots is left empty."""
        self._usual_s = _UNKNOWN_LATENCY_S
        """How long answers took in the last round that had some."""
        self._growth = _FAST
        self._rest = 0
        self._before: tuple[int, float] | None = None
        """Limit and answers a second before it grew; None: it did not grow last."""
        self._round = 0
        self._begin_round()

    def slot(self) -> Slot:
        """A slot for one request; an async context manager."""
        return Slot(self, _behalf.get())

    def came_back(self) -> None:
        """Begin anew after an outage, in which nothing could be learned of how much the endpoint can do."""
        self.limit = max(self.limit, min(BEGIN, self.most))
        self._growth, self._before, self._rest = _FAST, None, 0
        self._empty_until.clear()
        self._begin_round()
        self._serve()

    def hold(self, seconds: float) -> None:
        """Give no request to the endpoint for so long, as it asked."""
        self._held_until = max(self._held_until, self._clock() + seconds)

    # -- slots ----------------------------------------------------------------------------------------------

    async def _enter(self, place: float) -> int:
        """Wait for a slot; the number of the round it belongs to."""
        if self._at_work < self.limit and not self._waiting:
            until = self._grant()
        else:
            granted: asyncio.Future[float] = asyncio.get_running_loop().create_future()
            entry = (place, next(self._number), granted)
            heapq.heappush(self._waiting, entry)
            try:
                until = await granted
            except asyncio.CancelledError:
                if granted.cancelled():
                    # Not there when it came to its turn in the meantime and was passed over.
                    if entry in self._waiting:
                        self._waiting.remove(entry)
                        heapq.heapify(self._waiting)
                else:
                    self._leave()  # it was granted in the moment in which it was no longer wanted
                raise
        try:
            while (left := max(self._held_until, until) - self._clock()) > 0:
                # Not all at the same moment.
                await self._sleep(left * (1 + 0.1 * self._random()))
        except BaseException:
            self._leave()
            raise
        self.peak = max(self.peak, self._at_work)
        return self._round

    def _grant(self) -> float:
        """Give one more slot away; until when it is to be left empty."""
        now = self._clock()
        while self._empty_until and self._empty_until[0] <= now:
            heapq.heappop(self._empty_until)
        untouched = self.limit - self._at_work - len(self._empty_until)
        self._at_work += 1
        return now if untouched > 0 else heapq.heappop(self._empty_until)

    def _leave(self) -> None:
        self._at_work -= 1
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._at_work < self.limit:
            _, _, granted = heapq.heappop(self._waiting)
            if not granted.done():
                granted.set_result(self._grant())

    # -- rounds ---------------------------------------------------------------------------------------------

    def _begin_round(self) -> None:
        self._round += 1
        self._answered = self._refused = 0
        self._latency_s = 0.0

    def _count(self, round_number: int, latency_s: float, *, overloaded: bool) -> None:
        """Take in how a request ended that was sent in that round."""
        if round_number != self._round:
            return  # sent before the number was changed, it says nothing of the present one
        if overloaded:
            self._refused += 1
            if latency_s < self._usual_s:
                heapq.heappush(self._empty_until, self._clock() + self._usual_s - latency_s)
        else:
            self._answered += 1
            self._latency_s += latency_s
        if self._answered + self._refused >= max(_LEAST_ROUND, math.ceil(self.limit / 2)):
            self._end_round()

    def _end_round(self) -> None:
        share = self._refused / (self._answered + self._refused)
        rate = self.limit * self._answered / self._latency_s if self._latency_s > 0 else math.inf
        limit = self.limit
        if self._answered:
            self._usual_s = self._latency_s / self._answered
        if share > _TOLERATED:
            limit = max(1, math.floor(limit * max(0.5, 1 - share)))
            self._growth, self._before, self._rest = _SLOW, None, 0
            self._empty_until.clear()  # of slots that there are no more
        elif self._rest:
            self._rest -= 1
        elif self._before is not None and self._gained(rate) is False:
            limit, self._before = self._before[0], None
            self._growth, self._rest = _SLOW, _REST_ROUNDS
        elif self._waiting and not self._refused and limit < self.most:
            self._before = (limit, rate)
            limit = min(self.most, max(limit + 1, math.floor(limit * self._growth)))
        self.limit = limit
        self._begin_round()
        self._serve()

    def _gained(self, rate: float) -> bool:
        assert self._before is not None
        limit, before = self._before
        return rate >= before * (1 + _PAYS * (self.limit / limit - 1))


class Slot:
    """Leave to send one request."""

    def __init__(self, throttle: Throttle, behalf: Behalf | None) -> None:
        self._throttle = throttle
        self._behalf = behalf
        self._round = 0
        self._since = 0.0
        self.ended: Literal["answered", "overloaded"] | None = None
        """To be set to what the endpoint did; None: nothing that tells how much it can do (no connection, say)."""

    async def __aenter__(self) -> Self:
        behalf = self._behalf
        if behalf is None:
            self._round = await self._throttle._enter(math.inf)
        else:
            behalf.asking += 1
            try:
                self._round = await self._throttle._enter(behalf.place)
            except BaseException:
                behalf.asking -= 1
                raise
        self._since = self._throttle._clock()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        throttle = self._throttle
        if self.ended is not None:
            latency_s = throttle._clock() - self._since
            throttle._count(self._round, latency_s, overloaded=self.ended == "overloaded")
        if self._behalf is not None:
            self._behalf.asking -= 1
        throttle._leave()
