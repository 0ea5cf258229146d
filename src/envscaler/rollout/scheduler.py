"""`Scheduler`: keeps as many episodes in play as there is room for, and plays again what the machinery cut short.

A ready queue without barriers: whenever one ends, the next begins, whatever the others are doing. What an episode is,
and where it is written down, is the business of whoever plays it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import count
from typing import Generic, TypeVar

Work = TypeVar("Work")

PAUSES_S: tuple[float, ...] = (1.0, 5.0)
"""How long after its end, at least, an episode that the machinery cut short begins again: once, and once more."""
_LOOK_EVERY_S = 0.25
"""How often it is looked whether there is more room."""

Play = Callable[[Work, bool], Awaitable[bool]]
"""Plays one piece of work and says whether it is to be played again; told whether that is possible."""


class Scheduler(Generic[Work]):
    """Plays work side by side.

    Args:
        ready: the work, in the order in which it is to begin; taken one at a time.
        room: how many may be in play now; it may change at any time.
        pauses_s: as `PAUSES_S`; as many times is a piece of work played again at most, behind all that is ready.
    """

    def __init__(self, ready: Iterable[Work], room: Callable[[], int], *, pauses_s: Sequence[float] = PAUSES_S) -> None:
        self._ready = iter(ready)
        self._room = room
        self._pauses_s = tuple(pauses_s)
        self._again: list[tuple[float, int, int, Work]] = []
        """A heap of what is to be played again: when, in which order, for which time, what."""
        self._order = count()
        self._in_play = 0
        self._stopped = False
        self._changed = asyncio.Event()
        self.peak = 0
        """Most that were in play at once."""

    def stop(self) -> None:
        """Begin nothing more; what is in play comes to its end."""
        self._stopped = True
        self._changed.set()

    async def run(self, play: Play[Work]) -> None:
        """Play everything; nothing outlives this.

        Raises:
            Exception: what `play` raised, as it is; what is in play is then cancelled.
        """
        try:
            async with asyncio.TaskGroup() as group:
                while (following := await self._next()) is not None:
                    group.create_task(self._played(play, *following))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _played(self, play: Play[Work], work: Work, times: int) -> None:
        again = await play(work, times < len(self._pauses_s))
        self._in_play -= 1
        if again and times < len(self._pauses_s):
            due = asyncio.get_running_loop().time() + self._pauses_s[times]
            heapq.heappush(self._again, (due, next(self._order), times + 1, work))
        self._changed.set()

    async def _next(self) -> tuple[Work, int] | None:
        """The next piece of work, when there is room for it, with how often it was played; None at the end."""
        while not self._stopped:
            self._changed.clear()
            full = self._in_play >= max(1, self._room())
            if not full and (following := self._taken()) is not None:
                self._in_play += 1
                self.peak = max(self.peak, self._in_play)
                return following
            if not self._in_play and not self._again:
                return None
            wait_s = _LOOK_EVERY_S if full else self._again_in_s()
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                continue
        return None

    def _taken(self) -> tuple[Work, int] | None:
        for work in self._ready:
            return work, 0
        if self._again and self._again_in_s() == 0:
            _, _, times, work = heapq.heappop(self._again)
            return work, times
        return None

    def _again_in_s(self) -> float | None:
        return max(0.0, self._again[0][0] - asyncio.get_running_loop().time()) if self._again else None
