"""Sessions of a benchmark, each a process of its own forked from one that has loaded the benchmark's package.

The control socket hands over one end of a pair for each session; on it, JSON lines are asked and answered one at a
time. A session ends when its other end is closed, and so does everything when the control socket is. What is answered
is the business of the benchmark's module.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

Answer = Mapping[str, Any]

_ORDER_BYTES = 16
_PR_SET_PDEATHSIG = 1
"""Of Linux; elsewhere a session notices only between calls."""


class Session(Protocol):
    """One episode, or something that is looked up."""

    def answer(self, question: Mapping[str, Any]) -> Answer:
        """The answer to a question; what it raises is nobody's fault who plays."""
        ...


class Service(Protocol):
    """A benchmark, loaded; its module has a function `service(settings)` that gives it."""

    def session(self) -> Session:
        """A session that shares nothing with others: it is called in a process of its own."""
        ...


def main(module: str, control_fd: int, settings: str) -> None:
    """Serve until the control socket is closed."""
    # Whatever the benchmark prints must not end up anywhere but in the log.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    control = socket.socket(fileno=control_fd)
    given = json.loads(settings)
    service: Service = importlib.import_module(f"envscaler.bench.inside.{module}").service(given)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent = os.getpid()
    gc.collect()
    gc.freeze()
    control.sendall(b"ready\n")
    while True:
        data, handles, _, _ = socket.recv_fds(control, _ORDER_BYTES, 1)
        if not data:
            os._exit(0)
        for handle in handles:
            if os.fork() == 0:
                _end_with(parent)
                control.close()
                _serve(service, socket.socket(fileno=handle), int(given["memory_mb"]))
            os.close(handle)


def _end_with(parent: int) -> None:
    """Have this process end with the one it comes from, also in a call that does not end."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _serve(service: Service, channel: socket.socket, memory_mb: int) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    with contextlib.suppress(OSError, ValueError):
        session = service.session()
        stream = channel.makefile("rwb")
        _say(stream, {"pid": os.getpid()})
        for line in stream:
            answer: Answer
            try:
                answer = {"answer": session.answer(json.loads(line))}
            except MemoryError:
                break
            except Exception:  # noqa: BLE001 - the last boundary of this process; the other end tells the user
                answer = {"failed": traceback.format_exc()}
            _say(stream, answer)
    os._exit(0)


def _say(stream: Any, answer: Answer) -> None:
    # Half of a surrogate pair has an escape in ASCII, and none in UTF-8.
    stream.write(json.dumps(answer).encode("ascii") + b"\n")
    stream.flush()
