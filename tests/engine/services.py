"""Services that the tests of `Processes` let their processes enter."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from envscaler.engine import Serve, Tell


@asynccontextmanager
async def arithmetic(start: int) -> AsyncIterator[Serve]:
    """Adds to a number, and says what it sees of its surroundings."""

    async def serve(payload: Any, tell: Tell) -> Any:
        kind, value = payload
        if kind == "add":
            tell(f"adding {value}")
            print("a library that prints")
            return start + value
        if kind == "environment":
            return dict(os.environ)
        if kind == "pid":
            await asyncio.sleep(0.2)
            return os.getpid()
        if kind == "raise":
            raise ValueError(value)
        calls = _noted(value)
        if kind == "sleep":
            await asyncio.sleep(600)
        if kind == "die" or (kind == "die once" and calls == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"

    yield serve


def _noted(log: Path) -> int:
    """Note this process in a file, and say how many calls have."""
    with log.open("a", encoding="ascii") as notes:
        notes.write(f"{os.getpid()}\n")
    return len(log.read_text(encoding="ascii").splitlines())


@asynccontextmanager
async def broken(_: object) -> AsyncIterator[Serve]:
    """Cannot be entered."""
    raise OSError("no room")
    yield
