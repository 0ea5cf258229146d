"""`spread`: hands pieces of work to a service, in this process or in several, and yields the answers in order.

Both ways give the same; what a piece of work is, is the service's business.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import aclosing
from typing import Any

from envscaler.engine.mapping import bounded_map
from envscaler.engine.processes import Processes
from envscaler.engine.serving import Service

_AT_ONCE = 2
"""Pieces side by side in one process: while one waits for its sandbox the other is at work."""


async def spread(
    service: str, argument: object, work: Iterable[Any] | AsyncIterable[Any], *, workers: int
) -> AsyncGenerator[Any, None]:
    """Yield the service's answer to each piece of work.

    Args:
        service: `module:function`, as for `Processes`.
        workers: processes; 1: this one.

    Raises:
        ProcessLost: if the processes that the work is handed to die.
        Exception: with one worker, what the service raises.
    """
    if workers > 1:
        async with Processes(workers, service, argument) as processes:
            handed = bounded_map(lambda piece: processes.call(piece, _ignore), work, limit=workers + 1)
            async with aclosing(handed) as answers:
                async for answer in answers:
                    yield answer
        return
    async with (
        _service(service)(argument) as serve,
        aclosing(bounded_map(lambda piece: serve(piece, _ignore), work, limit=_AT_ONCE)) as answers,
    ):
        async for answer in answers:
            yield answer


def _service(name: str) -> Service:
    module, _, function = name.partition(":")
    service: Service = getattr(importlib.import_module(module), function)
    return service


def _ignore(_: object) -> None:
    return None
