"""`Nursery`: the parent's hold on one zygote process: starts it, has it compile programs and fork workers.

What a worker is asked is not its business.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import msgspec

import envscaler
from envscaler.errors import ProgramError, SandboxError
from envscaler.sandbox.channel import Channel, ChannelClosed
from envscaler.sandbox.contract import IsolationReport, Limits, Program
from envscaler.sandbox.inside.wire import Fork, Forked, Load, Loaded, Ready, Reap, Settings, framed, utf8
from envscaler.sandbox.memory import Resident
from envscaler.sandbox.worker import Worker

_START_S = 60.0
_END_S = 10.0
_CONTROL_FRAME_BYTES = 1_000_000

# The packages above `inside` are put in place as empty modules: their own initialisation would load half the
# distribution into every worker.
_BOOTSTRAP = """
import sys, types
sys.path[:] = sys.argv[4:]
for name, folder in (("envscaler", sys.argv[1]), ("envscaler.sandbox", sys.argv[1] + "/sandbox")):
    module = types.ModuleType(name)
    module.__path__ = [folder]
    sys.modules[name] = module
from envscaler.sandbox.inside.zygote import main
main(int(sys.argv[2]), sys.argv[3])
"""

_decode_loaded = msgspec.msgpack.Decoder(Loaded).decode
_decode_forked = msgspec.msgpack.Decoder(Forked).decode


WorkerT = TypeVar("WorkerT", bound=Worker)


class ForkRefused(Exception):
    """The system starts no more processes, or this process may open no more files, for now."""


class Nursery:
    """One zygote, replaced by a new one if it should die."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Channel | None = None
        self._loaded: set[str] = set()
        self._unreaped: list[int] = []
        self._closed = False
        self.isolation = IsolationReport("portable", ("not started",))

    async def start(self) -> None:
        """Start the zygote if it does not run.

        Raises:
            SandboxError: with what the zygote printed, if it does not come up.
        """
        async with self._lock:
            try:
                await self._started()
            except ForkRefused as error:
                raise SandboxError(f"the process that starts workers cannot be started: {error.__cause__}") from error

    async def fork(self, program: Program | None, max_frame_bytes: int, kind: type[WorkerT]) -> WorkerT:
        """A new worker for `program`, or for judging.

        Raises:
            ForkRefused: if the system gives no process or no descriptor.
            ProgramError: if the program does not compile.
            SandboxError: if the zygote cannot be kept alive.
        """
        # An order that is broken off would leave its answer in the socket, and with the zygote every worker would have
        # to go: whoever is cancelled leaves, and the order is finished without him.
        order = asyncio.ensure_future(self._ordered(program, max_frame_bytes, kind))
        try:
            return await asyncio.shield(order)
        except asyncio.CancelledError:
            order.add_done_callback(_unwanted)
            raise

    async def _ordered(self, program: Program | None, max_frame_bytes: int, kind: type[WorkerT]) -> WorkerT:
        async with self._lock:
            for _ in range(3):
                try:
                    control = await self._started()
                    if program is not None and program.digest not in self._loaded:
                        await self._load(control, program)
                    worker = await self._fork(control, program, max_frame_bytes, kind)
                except ChannelClosed:
                    # The zygote died, say by memory pressure; a new one knows nothing of the old one's programs.
                    await self._discard()
                    continue
                if worker is not None:
                    return worker
                assert program is not None
                self._loaded.discard(program.digest)
        raise SandboxError("the process that starts workers keeps dying")

    def reap(self, pid: int) -> None:
        """Have a killed worker collected."""
        self._unreaped.append(pid)
        if not self._lock.locked():
            self._flush()

    async def close(self) -> None:
        """End the zygote and all its workers; idempotent."""
        async with self._lock:
            self._closed = True
            await self._discard()

    # -- with the lock held ---------------------------------------------------------------------------------

    async def _started(self) -> Channel:
        if self._control is not None and not self._control.closed:
            self._flush()
            return self._control
        if self._closed:
            raise SandboxError("the sandbox is closed")
        await self._discard()
        try:
            process, ours = _spawn(self._limits)
        except OSError as error:
            raise ForkRefused from error
        self._process = process
        self._control = Channel(ours, _CONTROL_FRAME_BYTES)
        assert process.stderr is not None
        try:
            ready = msgspec.msgpack.decode(await asyncio.wait_for(self._control.receive(), _START_S), type=Ready)
        except (ChannelClosed, TimeoutError, msgspec.MsgspecError) as error:
            process.kill()
            trouble = await asyncio.to_thread(process.stderr.read)
            await self._discard()
            text = trouble.decode("utf-8", "replace").strip() or type(error).__name__
            raise SandboxError(f"the process that starts workers does not come up: {text}") from error
        except BaseException:
            await self._discard()
            raise
        process.stderr.close()
        self.isolation = IsolationReport("hardened" if ready.hardened else "portable", ready.missing)
        return self._control

    async def _load(self, control: Channel, program: Program) -> None:
        answer = _decode_loaded(await control.request(framed(Load(program.digest, utf8(program.source)))))
        if answer.refused:
            raise ForkRefused
        if answer.type:
            raise ProgramError(program_fault(answer.type, answer.message, answer.line))
        self._loaded.add(program.digest)

    async def _fork(
        self, control: Channel, program: Program | None, max_frame_bytes: int, kind: type[WorkerT]
    ) -> WorkerT | None:
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise ForkRefused from error
        try:
            with theirs:
                order = framed(Fork(program.digest if program is not None else ""))
                pid = _decode_forked(await control.request_with(order, theirs.fileno())).pid
        except BaseException:
            ours.close()
            raise
        if pid <= 0:
            ours.close()
            if pid < 0:
                raise ForkRefused
            return None
        assert self._process is not None
        return kind(pid, Channel(ours, max_frame_bytes), self, Resident.of(self._process.pid))

    async def _discard(self) -> None:
        self._loaded.clear()
        self._unreaped.clear()
        if self._control is not None:
            self._control.close()
            self._control = None
        process, self._process = self._process, None
        if process is None:
            return
        if process.stderr is not None:
            process.stderr.close()
        # The zygote ends its workers and itself when its socket closes.
        try:
            await asyncio.shield(asyncio.to_thread(_wait, process))
        except RuntimeError:  # no thread can be started; it has seconds to end, which are then waited here
            _wait(process)

    def _flush(self) -> None:
        while self._unreaped and self._control is not None and self._control.post(framed(Reap(self._unreaped[-1]))):
            self._unreaped.pop()


def program_fault(kind: str, message: str, line: int) -> str:
    """How a program that cannot be used is described: exception, message, line."""
    text = f"{kind}: {message}" if message else kind
    return f"{text} (line {line} of the program)" if line else text


def settings_of(limits: Limits) -> Settings:
    """The part of the limits that is enforced where the program runs."""
    return Settings(
        limits.cpu_s, limits.memory_mb, limits.max_output_bytes, limits.max_state_bytes, limits.max_message_chars
    )


def _spawn(limits: Limits) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    with ExitStack() as failed, theirs:
        failed.callback(ours.close)
        process = subprocess.Popen(
            [
                # Not -I: it would ignore PYTHONHASHSEED.
                *(sys.executable, "-s", "-P", "-B", "-c", _BOOTSTRAP),
                str(Path(envscaler.__file__).parent),
                str(theirs.fileno()),
                msgspec.json.encode(settings_of(limits)).decode(),
                *(os.path.abspath(entry) for entry in sys.path),
            ],
            env={"PYTHONHASHSEED": "0", "TZ": "UTC0", "LC_ALL": "C.UTF-8"},
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        failed.pop_all()
    return process, ours


def _unwanted(order: asyncio.Future[WorkerT]) -> None:
    if not order.cancelled() and order.exception() is None:
        order.result().kill()


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
