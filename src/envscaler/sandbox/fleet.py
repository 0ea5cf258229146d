"""`Fleet`: which workers are alive: no more than allowed in number and in memory; idle ones end for who needs one.

A worker holds nothing that its owner could not make anew: a session plays its log again, a judge begins another. So an
idle one may be ended at any time; its owner finds it dead when it next looks. A worker that is being asked is left
alone, and who needs one while all are asked waits.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from envscaler.cores import usable_cores
from envscaler.errors import SandboxError
from envscaler.sandbox.contract import Limits
from envscaler.sandbox.memory import Resident, free_bytes

if TYPE_CHECKING:
    from envscaler.sandbox.worker import Worker

_MB = 1024 * 1024
_USUAL_BYTES = 3 * _MB
"""What a worker with a small state takes for itself: the pages that it copies from the zygote when it starts."""
_PLANNED_BYTES = 8 * _MB
"""Memory of one worker by which the number of workers is chosen."""
_LIVE_PER_CORE = 512
_LIVE_WHEN_UNKNOWN = 128
_CROWDED_SHARE = 0.9
"""Share of the allowed memory from which on a new worker only takes the place of another."""
_WEIGHED_AT_ONCE = 256
_WEIGHED_UNUSED = 16


class Fleet:
    """Counts, ends and refuses workers."""

    def __init__(self, limits: Limits) -> None:
        free = free_bytes()
        self.max_bytes = _allowed_bytes(limits, free)
        """Memory that all workers together may take; None where nobody can tell what they take."""
        self._wanted = max(1, limits.max_live or _sensible_number(self.max_bytes))
        self.max_live = self._wanted
        """Workers that may be alive at once; fewer than wanted after the system refused one."""
        self._berths = 0
        """Workers that are alive or about to be."""
        self._live: dict[Worker, int] = {}
        """With how many requests each had answered when it was last weighed; -1 where it was at work on one."""
        self._idle: dict[Worker, None] = {}
        """The one idle longest first."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._crowded = False

    @property
    def live(self) -> tuple[Worker, ...]:
        """The workers that are alive."""
        return tuple(self._live)

    # -- coming and going -----------------------------------------------------------------------------------

    async def admit(self) -> None:
        """Wait for leave to start one more worker, for which the one idle longest may have to go.

        Whoever has it either brings a worker on board or calls `leave`.
        """
        if not self._waiting and self._make_room():
            self._berths += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._waiting.remove(place)
                self._serve()
            else:
                self.leave()  # it was granted in the moment in which it was no longer wanted
            raise

    def board(self, worker: Worker) -> None:
        """Take on a new worker, which counts as being asked until it is put to `rest`."""
        self._live[worker] = -1
        worker.own_bytes = _USUAL_BYTES
        worker.turns = 1
        worker.keeper = self

    def leave(self) -> None:
        """Give leave back."""
        self._berths -= 1
        self._serve()

    def refused(self) -> None:
        """Give leave back because the system starts no more processes: it is to be as many as now, for a while.

        Raises:
            SandboxError: if it does not start a single one.
        """
        self._berths -= 1
        if not self._berths:
            raise SandboxError("the system lets no worker process start")
        self.max_live = self._berths
        self._serve()

    def take(self, worker: Worker) -> None:
        """A worker is going to be asked."""
        self._idle.pop(worker, None)

    def rest(self, worker: Worker) -> None:
        """A worker is not asked for the time being."""
        if worker.dead:
            worker.kill()
            return
        self._idle[worker] = None
        if self._waiting:
            self._serve()

    def gone(self, worker: Worker) -> None:
        """A worker has been killed."""
        self._live.pop(worker, None)
        self._idle.pop(worker, None)
        self.leave()

    # -- memory ---------------------------------------------------------------------------------------------

    def weigh(self) -> None:
        """Look what the workers take that were used since, and end some where it is too much, idle ones first.

        Of those that are being asked the largest goes, but not the one that has been at it longest, so that there is
        always one that comes to its end. Alone, it has itself to blame.
        """
        self.max_live = min(self._wanted, self.max_live + 1)
        for worker in self.live:
            if worker.dead:
                worker.kill()  # something else has ended it; its owner may not look for long
        if self.max_bytes is None:
            self._serve()
            return
        self._weigh_used()
        total = sum(worker.own_bytes for worker in self._live)
        while total > self.max_bytes and self._idle:
            largest = max(self._idle, key=lambda worker: worker.own_bytes)
            total -= largest.own_bytes
            self._park(largest)
        asked = sorted((worker for worker in self._live if worker.asked), key=lambda worker: worker.asked_at)
        while total > self.max_bytes and len(asked) > 1:
            largest = max(asked[1:], key=lambda worker: worker.own_bytes)
            asked.remove(largest)
            total -= largest.own_bytes
            largest.kill("crowded")
        if total > self.max_bytes and len(asked) == len(self._live) == 1:
            asked[0].kill("memory")
        self._crowded = total > _CROWDED_SHARE * self.max_bytes
        self._serve()

    def _weigh_used(self) -> None:
        used: list[Worker] = []
        unused: list[Worker] = []
        for worker, requests in self._live.items():
            (used if worker.requests != requests else unused).append(worker)
        # In turn, when they are too many to be looked at together: who was looked at goes to the end.
        # Of the others a few, because a program can also go on unasked.
        for worker in (*used[:_WEIGHED_AT_ONCE], *unused[:_WEIGHED_UNUSED]):
            resident = Resident.of(worker.pid)
            if resident is not None and worker.origin is not None:
                worker.own_bytes = _USUAL_BYTES + resident.beyond(worker.origin)
            del self._live[worker]
            self._live[worker] = -1 if worker.asked else worker.requests

    # -- room -----------------------------------------------------------------------------------------------

    def _make_room(self) -> bool:
        """Whether one more may start, if need be in place of an idle one."""
        if self._berths < self.max_live and not (self._crowded and self._berths):
            return True
        parked = False
        while self._idle and not (parked and self._berths < self.max_live):
            # The longest idle, of those that the fewest would have to be built again for.
            self._park(min(self._idle, key=lambda worker: worker.sessions))
            parked = True
        return parked and self._berths < self.max_live

    def _park(self, worker: Worker) -> None:
        del self._idle[worker], self._live[worker]
        worker.keeper = None
        self._berths -= 1
        worker.kill()

    def _serve(self) -> None:
        while self._waiting:
            if self._waiting[0].done():
                return  # cancelled, and about to remove itself
            if not self._make_room():
                return
            self._berths += 1
            self._waiting.popleft().set_result(None)


def few(workers: int) -> Limits:
    """Limits with so many workers alive at most, fewer where this machine allows fewer."""
    usual = Limits()
    return replace(usual, max_live=min(workers, _sensible_number(_allowed_bytes(usual, free_bytes()))))


def _allowed_bytes(limits: Limits, free: int | None) -> int | None:
    if Resident.of(os.getpid()) is None:
        return None
    if limits.max_total_mb is not None:
        return limits.max_total_mb * _MB
    # One worker that takes all that it may has to find room.
    return None if free is None else max(free // 2 // limits.sandboxes, 2 * limits.memory_mb * _MB)


def _sensible_number(allowed_bytes: int | None) -> int:
    cores = usable_cores()
    numbers = [_LIVE_PER_CORE * cores]
    numbers.append(_LIVE_WHEN_UNKNOWN if allowed_bytes is None else allowed_bytes // _PLANNED_BYTES)
    descriptors = _descriptors()
    if descriptors is not None:
        # One to each worker; the other half is for what else this process has open.
        numbers.append(descriptors // 2)
    return max(2 * cores, min(numbers))


def _descriptors() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
