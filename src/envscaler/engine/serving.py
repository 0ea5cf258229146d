"""What runs in a process of `Processes`: it enters one service and answers one call after another.

It ends with its parent, however that ends, also in the middle of a call.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import pickle
import queue
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, BinaryIO, Literal

HEADER_BYTES = 8

Tell = Callable[[Any], None]
"""Sends what happens during a call to whoever made it."""
Serve = Callable[[Any, Tell], Awaitable[Any]]
"""Answers one call. What it raises is a bug: whatever may go wrong is part of its answer."""
Service = Callable[[Any], AbstractAsyncContextManager[Serve]]
"""What a process enters once, with the argument it was started with."""

Kind = Literal["event", "answer", "failed"]


def framed(value: object) -> bytes:
    """A value with its length in front."""
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def body_of(stream: BinaryIO) -> bytes:
    """The next value, still as it came.

    Raises:
        EOFError: if there is none.
    """
    header = stream.read(HEADER_BYTES)
    body = stream.read(int.from_bytes(header, "big"))
    if len(header) < HEADER_BYTES or len(body) < int.from_bytes(header, "big"):
        raise EOFError
    return body


class _Waiting:
    """Calls that have come and are not begun; an empty one says that no more will come."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.busy = False


def main() -> None:
    """Serve on standard input and output."""
    calls = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a library prints must not end up among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(kind: Kind, value: object = None) -> None:
        answers.write(framed((kind, value)))
        answers.flush()

    name, argument = pickle.loads(body_of(calls))
    waiting = _Waiting()
    threading.Thread(target=_receive, args=(calls, waiting), daemon=True).start()
    try:
        asyncio.run(_serve(name, argument, waiting, send))
    except Exception:  # noqa: BLE001 - the last boundary of this process; the parent tells the user
        send("failed", traceback.format_exc())


async def _serve(name: str, argument: Any, waiting: _Waiting, send: Callable[..., None]) -> None:
    module, _, attribute = name.partition(":")
    service: Service = getattr(importlib.import_module(module), attribute)
    async with service(argument) as serve:
        while body := await asyncio.to_thread(waiting.calls.get):
            waiting.busy = True
            # Not in the thread that receives: unpickling imports modules, and the service is importing them too.
            send("answer", await serve(pickle.loads(body), lambda event: send("event", event)))
            waiting.busy = False


def _receive(calls: BinaryIO, waiting: _Waiting) -> None:
    while True:
        try:
            waiting.calls.put(body_of(calls))
        except EOFError:
            if waiting.busy:
                # At once and without any clean-up: there is nobody left who wants the answer.
                os._exit(0)
            waiting.calls.put(b"")
            return
