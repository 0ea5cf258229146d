"""`Processes`: a few processes of this package's own, each answering one call at a time, so that all cores work.

What they answer is the business of the service that they enter. They run no generated code, hold no keys, and get
nothing of this process but what a call hands over.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
from types import TracebackType
from typing import Any, Self

from envscaler.engine.serving import HEADER_BYTES, Kind, Tell, framed
from envscaler.errors import ProcessLost

_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "PYTHONHASHSEED", "LD_LIBRARY_PATH")
"""Variables that processes get; keys of endpoints stand in others."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_TRIES = 2
_END_S = 5.0


class Processes:
    """Processes that serve calls; started when they are needed. An async context manager, for one event loop.

    Args:
        count: processes at most, and calls that are answered side by side.
        service: `module:function` of what each process enters: called with `argument`, it gives an async context
            manager of a `Serve`.
        argument: picklable, as calls and answers are.
    """

    def __init__(self, count: int, service: str, argument: object = None) -> None:
        self.count = count
        self._begin = framed((service, argument))
        self._path = [os.path.abspath(entry) for entry in sys.path]
        self._free = asyncio.Semaphore(count)
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End all processes, those in a call too; idempotent."""
        processes, self._all = self._all, set()
        idle, self._idle = self._idle, []
        await asyncio.gather(*(process.end(gone=process in idle) for process in processes))

    @property
    def pids(self) -> tuple[int, ...]:
        """Numbers of the processes that run."""
        return tuple(sorted(process.pid for process in self._all))

    async def call(self, payload: object, on_event: Tell) -> Any:
        """The answer to one call; one that is cancelled ends its process.

        Raises:
            ProcessLost: if its process died, and a second one too, or none can be started.
            RuntimeError: with the traceback, if the service raised.
        """
        async with self._free:
            reason = ""
            for _ in range(_TRIES):
                while self._idle and self._idle[-1].has_ended:
                    await self._lose(self._idle.pop(), gone=True)
                process = self._idle.pop() if self._idle else await self._started()
                try:
                    answer = await process.ask(payload, on_event)
                except EOFError:
                    reason = await self._lose(process, gone=True)
                except BaseException:
                    await self._lose(process)
                    raise
                else:
                    self._idle.append(process)
                    return answer
            raise ProcessLost(f"a process that shares the work died twice in the same place ({reason})")

    async def _started(self) -> _Process:
        try:
            process = await _Process.start(self._begin, self._path)
        except OSError as error:
            raise ProcessLost(f"a process that shares the work cannot be started: {error}") from error
        self._all.add(process)
        return process

    async def _lose(self, process: _Process, *, gone: bool = False) -> str:
        self._all.discard(process)
        return await process.end(gone=gone)


class _Process:
    """One process and its two pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._process = process
        self._to, self._from = process.stdin, process.stdout

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself, as far as is known."""
        return self._process.returncode is not None

    @classmethod
    async def start(cls, begin: bytes, path: list[str]) -> _Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-s", "-P", "-c"),
            "import sys; sys.path[:] = sys.argv[1:]; from envscaler.engine.serving import main; main()",
            *path,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _ONE_THREAD,
            # An interrupt from the keyboard is for this process, which then ends that one.
            start_new_session=True,
        )
        started = cls(process)
        started._to.write(begin)
        return started

    async def ask(self, payload: object, on_event: Tell) -> Any:
        """
        Raises:
            EOFError: if the process ends before it has answered.
            RuntimeError: if its service raised.
        """
        try:
            self._to.write(framed(payload))
            await self._to.drain()
            while True:
                header = await self._from.readexactly(HEADER_BYTES)
                kind: Kind
                kind, value = pickle.loads(await self._from.readexactly(int.from_bytes(header, "big")))
                if kind == "answer":
                    return value
                if kind == "failed":
                    raise RuntimeError(f"in a process that shares the work:\n{value}")
                if kind == "event":
                    on_event(value)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise EOFError from error

    async def end(self, *, gone: bool = False) -> str:
        """Kill it, wait for its end, and say how it ended.

        Args:
            gone: it is in no call, or has closed its pipes, so it ends by itself. To kill it then would reap it here,
                behind the back of the event loop, which would never learn how it ended.
        """
        self._to.close()
        if not gone or not await self._has_ended():
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._has_ended()
        code = self._process.returncode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    async def _has_ended(self) -> bool:
        try:
            await asyncio.wait_for(self._process.wait(), _END_S)
        except TimeoutError:
            return False
        return True
