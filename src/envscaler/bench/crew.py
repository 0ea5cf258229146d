"""`Crew`: the processes in which a benchmark's own code runs, one for each session, in its own virtual environment.

What is asked there is the business of `world` and `check`, what is answered that of the modules in `inside`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from envscaler.errors import SandboxError, WorkerLost

INSIDE = Path(__file__).parent / "inside"
MEMORY_MB = 4096
"""Address space of one session."""
START_S = 120.0
QUESTION_S = 60.0
_LINE_BYTES = 64 << 20
_LOG_SHOWN = 600
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
"""Variables that these processes get; keys of endpoints stand in others."""
_BEGIN = """
import sys, types
inside, module, control, settings = sys.argv[1:]
for name, path in (("envscaler", []), ("envscaler.bench", []), ("envscaler.bench.inside", [inside])):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = path
from envscaler.bench.inside.serving import main
main(module, int(control), settings)
"""
"""Only what is in `inside` can be imported of this package: whatever else it needs is not in that environment."""


class SessionLost(WorkerLost):
    """A session ended in the middle of a question, or had to be ended as it took too long."""

    def __init__(self, message: str, *, late: bool) -> None:
        super().__init__(message)
        self.late = late
        """Whether it took too long."""


class Session:
    """One process; questions are asked one at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int) -> None:
        self._reader, self._writer = reader, writer
        self.pid = pid

    async def ask(self, what: str, *, limit_s: float = QUESTION_S, **fields: Any) -> dict[str, Any]:
        """The answer to a question.

        Raises:
            SessionLost: if it ended, or took too long and was ended.
            SandboxError: if the benchmark's code failed in a way that no agent is to blame for.
        """
        question = json.dumps({"do": what, **fields}).encode("ascii") + b"\n"
        try:
            async with asyncio.timeout(limit_s):
                self._writer.write(question)
                await self._writer.drain()
                line = await self._reader.readuntil()
        except TimeoutError:
            await self.close()
            raise SessionLost(f"{what} took longer than {limit_s:.0f} s", late=True) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.close()
            raise SessionLost(f"the process of the benchmark ended in {what}", late=False) from None
        reply: dict[str, Any] = json.loads(line)
        if "failed" in reply:
            raise SandboxError(f"the benchmark failed in {what}: {reply['failed'].strip().splitlines()[-1]}")
        answer: dict[str, Any] = reply["answer"]
        return answer

    async def close(self) -> None:
        """End the process; idempotent."""
        if self._writer.is_closing():
            return
        self._writer.close()
        # It may be in a call that does not end. One that has ended by itself leaves its number to others.
        if not self._reader.at_eof():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


class Crew:
    """Sessions of one benchmark. An async context manager, for one event loop.

    Args:
        python: the interpreter of the benchmark's virtual environment.
        module: name of the module in `inside`.
        settings: what that module is told.
    """

    def __init__(self, python: Path, module: str, settings: Mapping[str, Any]) -> None:
        self._python = python
        self._module = module
        self._settings = {**settings, "memory_mb": MEMORY_MB}
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._starting = asyncio.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def open(self) -> Session:
        """A new session, which shares nothing with those before.

        Raises:
            SandboxError: if it cannot be started.
        """
        for last in (False, True):
            control = await self._running()
            try:
                return await self._forked(control)
            except (OSError, TimeoutError, EOFError) as error:
                # The process that sessions are forked from has ended; another one can be started.
                await self._end()
                if last:
                    raise SandboxError(f"no process of the benchmark can be started: {error}{self._log()}") from error
        raise AssertionError

    async def aclose(self) -> None:
        """End everything; idempotent."""
        await self._end()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def _forked(self, control: socket.socket) -> Session:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(control, [b"."], [theirs.fileno()])
            reader, writer = await asyncio.open_connection(sock=ours, limit=_LINE_BYTES)
        except BaseException:
            ours.close()
            raise
        try:
            async with asyncio.timeout(START_S):
                greeting = json.loads(await reader.readuntil())
        except BaseException:
            writer.close()
            raise
        return Session(reader, writer, greeting["pid"])

    async def _running(self) -> socket.socket:
        async with self._starting:
            if self._control is not None and self._process is not None and self._process.returncode is None:
                return self._control
            await self._end()
            return await self._start()

    async def _start(self) -> socket.socket:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="envscaler-bench-")
        home = self._folder.name
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        # BFCL makes folders as it is imported, below the one that is named here.
        environment |= {"HOME": home, "BFCL_PROJECT_ROOT": home, "PYTHONHASHSEED": "0"}
        arguments = (str(INSIDE), self._module, str(theirs.fileno()), json.dumps(self._settings))
        try:
            with theirs, (Path(home) / "log").open("wb") as log:
                self._process = await asyncio.create_subprocess_exec(
                    *(str(self._python), "-s", "-P", "-c", _BEGIN, *arguments),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    cwd=home,
                    pass_fds=(theirs.fileno(),),
                    # An interrupt from the keyboard is for this process, which then ends that one.
                    start_new_session=True,
                )
            ours.setblocking(False)
            async with asyncio.timeout(START_S):
                ready = await asyncio.get_running_loop().sock_recv(ours, 16)
        except (OSError, TimeoutError) as error:
            ours.close()
            await self._end()
            raise SandboxError(f"{self._python} cannot be started: {error}{self._log()}") from error
        if not ready:
            ours.close()
            await self._end()
            raise SandboxError(f"the benchmark's package cannot be loaded by {self._python}{self._log()}")
        # Handing over a socket never has to wait: orders are few and short.
        ours.setblocking(True)
        self._control = ours
        return ours

    async def _end(self) -> None:
        control, self._control = self._control, None
        process, self._process = self._process, None
        if process is not None:
            # Before it learns that there is nothing more to do: what has ended by itself cannot be ended in order.
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        if control is not None:
            control.close()
        if process is not None:
            await process.wait()

    def _log(self) -> str:
        """The end of what was printed there."""
        if self._folder is None:
            return ""
        with contextlib.suppress(OSError):
            text = (Path(self._folder.name) / "log").read_text("utf-8", "replace").strip()
            return f": …{text[-_LOG_SHOWN:]}" if len(text) > _LOG_SHOWN else f": {text}" if text else ""
        return ""
