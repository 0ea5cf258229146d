"""A small HTTP server in a process of its own, for endpoints that are measured against: nothing in it takes time.

What it answers is the business of the module that is started: `latency_server`, `recorded`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_BACKLOG = 4096
_HEAD = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

Reply = Callable[[bytes], Awaitable[tuple[int, bytes]]]
"""Status and body of the answer to the body of a POST."""


async def serve(reply: Reply, told: Callable[[], dict[str, Any]]) -> None:
    """Serve on a free port, which is printed, until the process is ended.

    Args:
        told: what a GET is answered with.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                if head.startswith(b"get"):
                    status, content = 200, json.dumps(told()).encode()
                else:
                    size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                    status, content = await reply(await reader.readexactly(size))
                writer.write(_HEAD % (status, b"OK" if status == 200 else b"Refused", len(content)) + content)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=_BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def running(module: str, *arguments: object) -> Iterator[str]:
    """The base URL of a server in a process of its own.

    Args:
        module: serves when it is started with these arguments.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()
