"""`Worker`: the parent's hold on one worker process: asks it, watches its time, kills it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from envscaler.sandbox.channel import Channel, ChannelClosed
from envscaler.sandbox.inside.wire import Reply, Request, framed

if TYPE_CHECKING:
    from envscaler.sandbox.contract import Limits
    from envscaler.sandbox.memory import Resident

Cause = Literal["ended", "cpu", "wall", "memory", "crowded"]
"""Why a worker is dead: by itself or nobody knows why; it used up its CPU time or the time by the wall clock; it took
more memory than all are allowed together; or others took too much with it, which is no fault of its own."""

_decode = msgspec.msgpack.Decoder(Reply).decode
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_IDLE_LOOK_EVERY = 8
"""Of how many looks at a worker that is not asked one reads its CPU time."""


class WorkerDied(Exception):
    """The worker ended before it answered."""

    def __init__(self, cause: Cause) -> None:
        self.cause = cause
        super().__init__(cause)


class Reaper(Protocol):
    """Whoever collects killed workers."""

    def reap(self, pid: int) -> None: ...


class Keeper(Protocol):
    """Whoever decides which workers stay alive."""

    def take(self, worker: Worker) -> None: ...

    def rest(self, worker: Worker) -> None: ...

    def gone(self, worker: Worker) -> None: ...


class Worker:
    """One worker process and the socket to it."""

    def __init__(self, pid: int, channel: Channel, reaper: Reaper, origin: Resident | None = None) -> None:
        """
        Args:
            origin: what the zygote had in memory when it forked it; None where the system does not tell.
        """
        self.pid = pid
        self.origin = origin
        self.own_bytes = 0
        """Memory of its own when it was last looked at."""
        self.keeper: Keeper | None = None
        """Told when it is used, rests and has been killed."""
        self.sessions = 1
        """How many instances end with it."""
        self.turns = 0
        """How many of its users are going to ask it."""
        self._channel = channel
        self._reaper = reaper
        self._cause: Cause = "ended"
        self._dead = False
        self.asked = False
        """Whether it has a request to answer."""
        self.asked_at = 0.0
        """When it got its latest request, by the monotonic clock."""
        self._cpu_at: float | None = None
        self._serial = 0
        self._idle_looks = pid % _IDLE_LOOK_EVERY
        self._idle_from = (-1, 0.0)
        """After how many requests it was first seen idle, and its CPU time then."""

    @property
    def dead(self) -> bool:
        """Whether it has been killed, or is known to have ended."""
        return self._dead or self._channel.closed

    @property
    def requests(self) -> int:
        """How many it has had."""
        return self._serial

    def take(self) -> None:
        """Say that it is going to be asked; until as many `rest` nobody ends it for another's sake."""
        self.turns += 1
        if self.turns == 1 and self.keeper is not None:
            self.keeper.take(self)

    def rest(self) -> None:
        """Say that whoever took it does not ask it for the time being."""
        self.turns -= 1
        if self.turns == 0 and self.keeper is not None:
            self.keeper.rest(self)

    def leave(self, slot: int) -> None:
        """Give up the instance in `slot`, and with it the process, which holds no other."""
        self.kill()

    def next_serial(self) -> int:
        """The number that the next request has to carry."""
        self._serial += 1
        return self._serial

    async def ask(self, request: Request) -> Reply:
        """Send a request and return its reply.

        Raises:
            WorkerDied: if there is none. The worker is then dead, as it is after a cancellation.
        """
        self.asked, self.asked_at, self._cpu_at = True, time.monotonic(), None
        try:
            reply = _decode(await self._channel.request(self._frame(request)))
            if reply.serial != request.serial:
                raise WorkerDied("ended")
        except (ChannelClosed, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.kill()
            raise WorkerDied(self._cause) from error
        except BaseException:
            self.kill()
            raise
        finally:
            self.asked = False
        return reply

    def _frame(self, request: Request) -> bytes:
        return framed(request)

    def watch(self, limits: Limits) -> None:
        """Kill the worker if its present request has used up its time, or if it works without being asked."""
        if self._dead:
            return
        if not self.asked:
            self._watch_idle(limits)
            return
        elapsed = time.monotonic() - self.asked_at
        if elapsed < min(0.5, limits.cpu_s):
            return
        used = _cpu_seconds(self.pid)
        if used is not None:
            if self._cpu_at is None:
                # Read only now, not at each call: a call cannot have used more than the time that has passed.
                self._cpu_at = max(0.0, used - elapsed)
            if used - self._cpu_at >= limits.cpu_kill_s:
                self.kill("cpu")
                return
        if elapsed >= limits.wall_s:
            self.kill("wall")

    def _watch_idle(self, limits: Limits) -> None:
        # A program can answer its call by itself and go on, or have a timer wake it.
        self._idle_looks += 1
        if self._idle_looks % _IDLE_LOOK_EVERY:
            return
        used = _cpu_seconds(self.pid)
        if used is None:
            return
        if self._idle_from[0] != self._serial:
            self._idle_from = (self._serial, used)
        elif used - self._idle_from[1] >= limits.cpu_s:
            self.kill()

    def kill(self, cause: Cause = "ended") -> None:
        """End the process; idempotent."""
        if self._dead:
            return
        self._dead = True
        self._cause = cause
        # The zygote collects a worker only when it is told to, so the number cannot belong to another process yet.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGKILL)
        self._channel.close()
        self._reaper.reap(self.pid)
        if self.keeper is not None:
            self.keeper.gone(self)


def _cpu_seconds(pid: int) -> float | None:
    """User and system time of a process; None where the system has no /proc."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as statistics:
            fields = statistics.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) * _TICK_S
