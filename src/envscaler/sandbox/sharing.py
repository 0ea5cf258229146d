"""`Pool` and `SharedWorker`: processes that hold many sessions of one program each.

Which programs may live so is decided elsewhere. Sessions there share an interpreter: a program that hides something in
the standard library hides it from none of them, and what kills one of their calls has all of them built again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from envscaler.cores import usable_cores
from envscaler.sandbox.channel import Channel
from envscaler.sandbox.contract import Program
from envscaler.sandbox.inside.wire import Leave, Reply, Request, framed
from envscaler.sandbox.memory import Resident
from envscaler.sandbox.worker import Reaper, Worker, WorkerDied

SESSIONS_IN_ONE = 256
"""From so many on, one more process is started for the next."""
BUILDS_IN_ONE = 2_000
"""After so many a process takes no more: what sessions leave behind in an interpreter adds up."""
_EMPTY = 16
"""Processes without a session that are kept for the next one."""


class SharedWorker(Worker):
    """A worker with many instances; its users take turns."""

    def __init__(self, pid: int, channel: Channel, reaper: Reaper, origin: Resident | None = None) -> None:
        super().__init__(pid, channel, reaper, origin)
        self.sessions = 0
        self.emptied: Callable[[SharedWorker], None] | None = None
        """Told when it holds none any more."""
        self._turn = asyncio.Lock()
        self._slot = 0
        self._left: list[int] = []
        """Slots given up while it was at work."""

    @property
    def retired(self) -> bool:
        """Whether it has had its share of sessions."""
        return self._slot >= BUILDS_IN_ONE

    def enter(self) -> int:
        """A slot for one more instance."""
        self.sessions += 1
        self._slot += 1
        return self._slot

    def leave(self, slot: int) -> None:
        """Give up the instance in `slot`; the others stay."""
        self.sessions -= 1
        if self.dead:
            self.kill()
            return
        # Between the parts of a request that is being sent nothing else may go.
        if self._turn.locked() or not self._channel.post(framed(Leave(slot))):
            self._left.append(slot)
        if not self.sessions and self.emptied is not None:
            self.emptied(self)

    async def ask(self, request: Request) -> Reply:
        """As `Worker.ask`, when those before have had their answer.

        Raises:
            WorkerDied: `crowded` if the worker died by what somebody else asked.
        """
        async with self._turn:
            if self.dead:
                raise WorkerDied("crowded")
            return await super().ask(request)

    def _frame(self, request: Request) -> bytes:
        left, self._left = self._left, []
        return b"".join([*(framed(Leave(slot)) for slot in left), framed(request)])


class Pool:
    """The shared workers of a sandbox.

    Args:
        most_live: how many workers may be alive at all.
    """

    def __init__(self, fork: Callable[[Program], Awaitable[SharedWorker]], most_live: int) -> None:
        self._fork = fork
        self._forking = asyncio.Lock()
        self._workers: dict[str, list[SharedWorker]] = {}
        self._empty: OrderedDict[SharedWorker, None] = OrderedDict()
        self._side_by_side = min(usable_cores(), most_live)

    async def place_for(self, program: Program) -> tuple[SharedWorker, int]:
        """A worker that is taken, and the slot in it for one more instance of `program`.

        Raises:
            ProgramError, SandboxError: as a fork does.
        """
        worker = self._roomiest(program)
        if worker is not None:
            worker.take()
        else:
            async with self._forking:
                worker = self._roomiest(program)  # one that was started in the meantime
                if worker is not None:
                    worker.take()
                else:
                    worker = await self._fork(program)
                    worker.emptied = self._emptied
                    self._forget_dead()
                    self._workers.setdefault(program.digest, []).append(worker)
        self._empty.pop(worker, None)
        return worker, worker.enter()

    def _roomiest(self, program: Program) -> SharedWorker | None:
        """The worker for one more session; None where there should be one more worker."""
        usable = [one for one in self._workers.get(program.digest, ()) if not one.dead and not one.retired]
        roomiest = min(usable, key=lambda worker: worker.sessions, default=None)
        if roomiest is None:
            return None
        most = 1 if len(usable) < self._side_by_side else SESSIONS_IN_ONE
        return roomiest if roomiest.sessions < most else None

    def _forget_dead(self) -> None:
        for digest, workers in tuple(self._workers.items()):
            self._workers[digest] = [worker for worker in workers if not worker.dead]
            if not self._workers[digest]:
                del self._workers[digest]

    def _emptied(self, worker: SharedWorker) -> None:
        if worker.retired:
            worker.kill()
            return
        self._empty[worker] = None
        if len(self._empty) > _EMPTY:
            oldest, _ = self._empty.popitem(last=False)
            oldest.kill()
