"""`Session`: one instance of a program, which survives the loss of its worker.

A session is its beginning (state, seed, clock) and the log of its calls; the worker is only where they were played. One
that is lost, or was ended because others needed the room, is replaced by playing them again. Calls that failed are
played too where they fail again at the same place: what a program keeps outside its instance, in its module say, is no
state and is not put back, and whether a session was parked in between must not show. Calls that ended their worker, or
ran out of time or memory, are not: after them the worker was a new one anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from envscaler.canonical import from_untrusted_json, json_text_of, to_json
from envscaler.errors import NotJson, ProgramError, SandboxError, WorkerLost
from envscaler.sandbox.clock import clock_text, clock_us
from envscaler.sandbox.contract import Arguments, Limits, Outcome, Program, Snapshot, ToolFault
from envscaler.sandbox.in_process import InProcess
from envscaler.sandbox.inside.wire import Build, Call, Read, Reply, Request, utf8
from envscaler.sandbox.nursery import program_fault
from envscaler.sandbox.sharing import SharedWorker
from envscaler.sandbox.worker import Worker, WorkerDied
from envscaler.state import JsonValue, State

CALL_US = 1_000_000
"""Microseconds that pass before each call, whatever it does."""

BuiltT = TypeVar("BuiltT")

_REBUILDS = 3


class Host(Protocol):
    """What a session needs of its sandbox."""

    limits: Limits

    @property
    def closed(self) -> bool: ...

    async def place_for(self, program: Program, *, alone: bool) -> tuple[Place, int]: ...

    async def admit(self) -> None: ...

    def dismiss(self) -> None: ...

    def abandon(self, place: Place | None, slot: int) -> None: ...


class Place(Protocol):
    """Where instances live: a worker of their own, one that they share, or this process."""

    @property
    def dead(self) -> bool: ...

    def take(self) -> None: ...

    def rest(self) -> None: ...

    def next_serial(self) -> int: ...

    async def ask(self, request: Request) -> Reply: ...

    def leave(self, slot: int) -> None: ...

    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a session starts from."""

    state: bytes
    seed: int
    clock_us: int
    call_index: int


class LoggedCall(NamedTuple):
    """A call that did something which it does again."""

    call_index: int
    clock_us: int
    name: str
    arguments: bytes
    digest: str
    """Of the state after it."""
    succeeded: bool


class Session:
    """One instance of a program, in a worker while it is used. `Sandbox.open` makes it."""

    def __init__(self, host: Host, program: Program, beginning: Beginning, spare: Place | None = None) -> None:
        """
        Args:
            spare: a worker that has served an earlier session of the program and is taken, to begin in.
        """
        self.program = program
        self._host = host
        self._beginning = beginning
        self._log: list[LoggedCall] = []
        self._lock = asyncio.Lock()
        self._in_turn = False
        self._place: Place | None = None
        self._slot = 0
        self._spare = spare
        self._alone = False
        """Whether a worker has died, or had to go, for what it was asked by this session: it shares no other."""
        self._digest = ""
        self._clock_us = beginning.clock_us
        self._index = beginning.call_index
        self._closed = False

    @property
    def digest(self) -> str:
        """Digest of the present state."""
        return self._digest

    @property
    def closed(self) -> bool:
        """Whether it was closed, by itself or with its sandbox."""
        return self._closed or self._host.closed

    @property
    def worker(self) -> Worker | None:
        """The worker that holds the instance; None while the session is parked."""
        place = self._place
        return place if isinstance(place, Worker) and not place.dead else None

    @property
    def busy(self) -> bool:
        """Whether it is doing something for somebody."""
        return self._lock.locked()

    @property
    def in_process(self) -> bool:
        """Whether its instance is in this process, where nothing is waited for."""
        return isinstance(self._place, InProcess)

    async def start(self) -> None:
        """Build the instance in a first worker.

        Raises:
            ProgramError: if that fails.
        """
        async with self._turn():
            self._digest, self._clock_us = await self._retrying(self._begin)

    async def call(self, name: str, arguments: Arguments) -> Outcome:
        """Call the program's public method `name`.

        A call that fails in any way leaves the state as it was. Cancelled in the middle, it was never made.

        Raises:
            WorkerLost: if the worker died and playing the session's log again did not give the same states.
        """
        name = utf8(name)
        async with self._turn():
            self._require_open()
            clock = self._clock_us + CALL_US
            try:
                text = json_text_of(dict(arguments))
            except NotJson as error:
                # Models write such arguments (an integer without end, infinity).
                return self._failed(ToolFault("not_json", "NotJson", f"in the arguments, {error}"), clock)
            deaths = 0
            while True:
                place = await self._live()
                request = Call(place.next_serial(), self._index, clock, name, text, slot=self._slot)
                try:
                    reply = await place.ask(request)
                    if not (reply.kind == "timeout" and isinstance(place, SharedWorker)):
                        break
                    # What others left to be cleared away may have taken the time.
                    self._alone = True
                    self._drop()
                except WorkerDied as death:
                    self._drop()
                    mine = self._is_mine(death, place)
                    deaths += mine
                    # Time by the wall passes on a loaded machine too, and anything may kill a process; twice is the
                    # tool's doing. CPU time, and memory that nobody else takes, are the tool's own.
                    if mine and (death.cause in ("cpu", "memory") or deaths == 2):
                        return self._failed(death_fault(death, self._host.limits), clock)
                except BaseException:
                    self._drop_if_dead()
                    raise
            if reply.kind != "ok":
                if reply.usable:
                    if reply.kind != "unknown_tool":
                        self._log.append(LoggedCall(self._index, clock, name, text, self._digest, False))
                else:
                    self._alone = True
                    self._drop()
                return self._failed(reply_fault(reply, self._host.limits), clock)
            try:
                result = _received(reply.result, self._host.limits.max_output_bytes)
            except NotJson as error:
                self._drop()
                message = shortened(str(error), self._host.limits)
                return self._failed(ToolFault("not_json", "NotJson", message), clock)
            self._log.append(LoggedCall(self._index, clock, name, text, reply.digest, True))
            changed = reply.digest != self._digest
            self._digest = reply.digest
            self._clock_us = reply.clock_us
            self._index += 1
            return Outcome(result, None, reply.digest, changed)

    async def state(self) -> State:
        """The present state, a copy of the caller's own."""
        async with self._turn():
            return await self._state()

    async def snapshot(self, *, state: State | None = None) -> Snapshot:
        """All that is needed to go on from here, also in another process on another machine.

        Args:
            state: the present state, where it is known; it is not fetched then.
        """
        async with self._turn():
            if state is None:
                state = await self._state()
            return Snapshot(state, clock_text(self._clock_us), self._index, self._beginning.seed)

    async def restore(self, snapshot: Snapshot, *, fresh: bool = True) -> None:
        """Go on from `snapshot`.

        Args:
            fresh: in a new worker; else in the present one, where the program's module is executed anew and only what
                the program hid in the standard library stays.

        Raises:
            ProgramError: if the program cannot be built from it; the session is then as it was.
        """
        beginning = Beginning(to_json(snapshot.state), snapshot.seed, clock_us(snapshot.clock), snapshot.call_index)
        async with self._turn():
            self._require_open()
            before = (self._beginning, self._log, self._clock_us, self._index)
            self._beginning, self._log = beginning, []
            if fresh or isinstance(self._place, SharedWorker):
                self._leave()
            else:
                self._spare, self._place = self._place, None
            try:
                self._digest, _ = await self._retrying(self._begin)
            except BaseException:
                self._beginning, self._log, self._clock_us, self._index = before
                raise
            self._clock_us, self._index = beginning.clock_us, beginning.call_index

    async def fork(self) -> Session:
        """A second session that goes on from here by itself, equal also in what its state does not show."""
        self._require_open()
        await self._host.admit()
        # Before anything can fail: from here on the twin answers for the leave that it was given.
        twin = Session(self._host, self.program, self._beginning)
        try:
            async with self._lock:
                twin._beginning, twin._log = self._beginning, list(self._log)
                twin._digest, twin._clock_us, twin._index = self._digest, self._clock_us, self._index
            async with twin._turn():
                await twin._live()
        except BaseException:
            await twin.close()
            raise
        return twin

    def release(self) -> Worker | None:
        """Give up the worker, if it is alive, for another session of the same program."""
        place, self._place = self._place, None
        if isinstance(place, Worker) and not isinstance(place, SharedWorker) and not place.dead:
            return place
        if place is not None:
            place.leave(self._slot)
        return None

    async def close(self) -> None:
        """End the worker; idempotent."""
        if not self._closed:
            self._closed = True
            self._leave()
            self._host.dismiss()

    # -- the worker -----------------------------------------------------------------------------------------

    async def _live(self) -> Place:
        """The worker, replaced by a new one with the same history if it is gone."""
        self._require_open()
        if self._place is None or self._place.dead:
            self._drop()
            await self._retrying(self._replay, again=True)
            assert self._place is not None
        return self._place

    async def _retrying(self, build: Callable[[Place, int], Awaitable[BuiltT]], *, again: bool = False) -> BuiltT:
        """Build the instance in some worker; what was built before and cannot be `again` is lost."""
        spare, self._spare = self._spare, None
        if spare is not None:
            try:
                built = await build(spare, 0)
            except (WorkerDied, ProgramError):
                spare.kill()  # what went before in it may be to blame; a new worker decides
            except BaseException:
                spare.kill()
                raise
            else:
                self._take_place(spare, 0)
                return built
        deaths = 0
        while True:
            place, slot = await self._host.place_for(self.program, alone=self._alone)
            try:
                built = await build(place, slot)
            except WorkerDied as death:
                mine = self._is_mine(death, place)
                deaths += mine
                if not mine or (deaths < _REBUILDS and death.cause not in ("cpu", "memory")):
                    continue
                fault = death_fault(death, self._host.limits)
                if again:
                    raise WorkerLost(f"a worker could not be rebuilt: {fault}") from death
                raise ProgramError(str(fault)) from death
            except BaseException:
                place.rest()
                place.leave(slot)
                raise
            self._take_place(place, slot)
            return built

    def _take_place(self, place: Place, slot: int) -> None:
        if self.closed:
            place.rest()
            place.leave(slot)  # closed while it was waiting for its worker
            self._require_open()
        self._place, self._slot = place, slot

    async def _begin(self, place: Place, slot: int) -> tuple[str, int]:
        start = self._beginning
        reply = await place.ask(
            Build(place.next_serial(), self.program.class_name, start.state, start.seed, start.clock_us, slot)
        )
        if reply.kind == "timeout" and isinstance(place, SharedWorker):
            place.kill()
            raise WorkerDied("ended")  # as in `call`
        if reply.kind != "ok":
            fault = reply_fault(reply, self._host.limits)
            raise ProgramError(program_fault(fault.type, fault.message, reply.line))
        return reply.digest, reply.clock_us

    async def _replay(self, place: Place, slot: int) -> None:
        try:
            digest, _ = await self._begin(place, slot)
        except ProgramError as error:
            raise WorkerLost(f"a worker could not be rebuilt: {error}") from error
        for logged in self._log:
            reply = await place.ask(
                Call(place.next_serial(), logged.call_index, logged.clock_us, logged.name, logged.arguments, True, slot)
            )
            digest = reply.digest
            if (reply.kind == "ok") != logged.succeeded or not reply.usable or digest != logged.digest:
                if isinstance(place, SharedWorker):
                    place.kill()
                    raise WorkerDied("ended")  # alone it may still do
                raise WorkerLost(f"call {logged.call_index} ({logged.name}) did not do again what it had done before")
        if digest != self._digest:
            raise WorkerLost("the program was not built again as it had been before")

    async def _state(self) -> State:
        deaths = 0
        while deaths < _REBUILDS:
            place = await self._live()
            try:
                reply = await place.ask(Read(place.next_serial(), self._slot))
            except WorkerDied as death:
                self._drop()
                deaths += self._is_mine(death, place)
                continue
            except BaseException:
                self._drop_if_dead()
                raise
            fault = str(reply_fault(reply, self._host.limits))
            if reply.kind == "ok":
                try:
                    state = _received(reply.result, self._host.limits.max_state_bytes)
                    if isinstance(state, dict):
                        return state
                except NotJson as error:
                    fault = shortened(str(error), self._host.limits)
            self._drop()
            raise WorkerLost(f"the state cannot be read: {fault}")
        raise WorkerLost("the worker dies when its state is read")

    def _turn(self) -> _Turn:
        return _Turn(self)

    def _is_mine(self, death: WorkerDied, place: Place) -> bool:
        """Whether a death is this session's doing, as far as is known; where others were in it, it tries alone."""
        if death.cause == "crowded":
            return False
        self._alone = True
        return not isinstance(place, SharedWorker)

    def _drop_if_dead(self) -> None:
        # Who is cancelled before its request was sent, in a worker that others use, has done it no harm.
        if self._place is None or self._place.dead:
            self._drop()

    def _drop(self) -> None:
        """Give up the worker, which is not to be trusted any more."""
        for place in (self._place, self._spare):
            if place is not None:
                place.kill()
        self._place = self._spare = None

    def _leave(self) -> None:
        """Give up the instance; a worker that others use goes on."""
        for place in (self._place, self._spare):
            if place is not None:
                if self._in_turn:
                    place.rest()
                place.leave(self._slot)
        self._place = self._spare = None

    def _failed(self, fault: ToolFault, clock: int) -> Outcome:
        self._clock_us = clock
        self._index += 1
        return Outcome(None, fault, self._digest, False)

    def _require_open(self) -> None:
        if self.closed:
            raise SandboxError("the session is closed")

    def __del__(self) -> None:
        if not self._closed:
            self._host.abandon(self._place or self._spare, self._slot)


class _Turn:
    """The time in which a session does one thing, and its worker may not be ended for another's sake.

    A class: a step is so short that a generator made into a context manager would show.
    """

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def __aenter__(self) -> None:
        session = self._session
        await session._lock.acquire()
        session._in_turn = True
        if session._place is not None:
            session._place.take()

    async def __aexit__(self, *_: object) -> None:
        session = self._session
        session._in_turn = False
        if session._place is not None:
            session._place.rest()
        session._lock.release()


def _received(text: bytes, limit: int) -> JsonValue:
    # The worker holds to the limits, unless the program has taken it over.
    if len(text) > limit:
        raise NotJson(f"it takes {len(text)} bytes as JSON, allowed are {limit}")
    return from_untrusted_json(text)


def reply_fault(reply: Reply, limits: Limits) -> ToolFault:
    """What a reply that has no result says of a call."""
    kind = "raised" if reply.kind == "ok" else reply.kind
    return ToolFault(kind, reply.type, shortened(reply.message, limits), reply.line)


def shortened(message: str, limits: Limits) -> str:
    """A message as long as the limits let one be, whoever sent it."""
    longest = limits.max_message_chars
    return message if len(message) <= longest else message[: longest - 1] + "…"


def death_fault(death: WorkerDied, limits: Limits) -> ToolFault:
    """What the death of its worker says of a call."""
    if death.cause == "cpu":
        return ToolFault("timeout", "Timeout", f"it used more than {limits.cpu_kill_s:g} s of CPU time")
    if death.cause == "wall":
        return ToolFault("timeout", "Timeout", f"it did not end within {limits.wall_s:g} s")
    if death.cause == "memory":
        return ToolFault("killed", "OutOfMemory", "it took more memory than all programs together may")
    return ToolFault("killed", "WorkerEnded", "it ended the process that it ran in")
