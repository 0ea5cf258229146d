"""`Silence`: notices that requests are at work and none of them has been answered for long.

A server that takes connections and does not answer makes no fault until the time of a request is up, which may be many
minutes; a person who looks on should hear of it before. What is done then is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envscaler.llm.transport import RetryPolicy

_SLOWER = 3.0
"""How many times as long as the slowest answer so far nothing has to be heard."""


class Silence:
    """Watches the requests to one endpoint."""

    def __init__(self, retry: RetryPolicy, notice: Callable[[float, int], None]) -> None:
        """
        Args:
            retry: has the clock, and says how long is long and how often a notice is given.
            notice: told since when nothing was heard, and how many requests wait.
        """
        self._retry = retry
        self._notice = notice
        self._at_work = 0
        self._heard_at = 0.0
        """When something last came back, or the first of the present requests was sent."""
        self._slowest_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def waited_for(self) -> _Request:
        """A context for the time in which one request is at work."""
        return _Request(self)

    def close(self) -> None:
        """Watch no more, until the next request."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _begin(self) -> float:
        now = self._retry.clock()
        if not self._at_work:
            self._heard_at = now
            self._look_in(self._long_s)
        self._at_work += 1
        return now

    def _end(self, sent_at: float, *, heard: bool) -> None:
        self._at_work -= 1
        if heard:
            self._heard_at = self._retry.clock()
            self._slowest_s = max(self._slowest_s, self._heard_at - sent_at)
        if not self._at_work:
            self.close()

    @property
    def _long_s(self) -> float:
        return max(self._retry.silence_s, _SLOWER * self._slowest_s)

    def _look_in(self, seconds: float) -> None:
        self.close()
        # The loop's own time, not the policy's: where a test makes that fly, nobody is to be waited for.
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        silent_s = self._retry.clock() - self._heard_at
        if silent_s >= self._long_s:
            self._notice(self._heard_at, self._at_work)
            self._look_in(self._retry.notify_every_s)
        else:
            self._look_in(self._long_s - silent_s)


class _Request:
    """The time in which one request is at work."""

    __slots__ = ("_sent_at", "_silence")

    def __init__(self, silence: Silence) -> None:
        self._silence = silence

    async def __aenter__(self) -> None:
        self._sent_at = self._silence._begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._silence._end(self._sent_at, heard=kind is None)
