"""A chat server that answers each request after the same time, however many there are: the ideal of an endpoint.

Started as a process of its own: `python -m perf.latency_server SECONDS CALLS` prints its port and serves until it is
ended. Each conversation makes CALLS tool calls and then says that it is done.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TOOL = b'"role":"tool"'
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_BACKLOG = 4096


async def serve(latency_s: float, calls: int) -> None:
    """Serve on a free port, which is printed."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                asked = await reader.readexactly(size)
                await asyncio.sleep(latency_s)
                body = _reply(asked.replace(b": ", b":").count(_TOOL), calls)
                writer.write(_HEAD % len(body) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=_BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _reply(seen: int, calls: int) -> bytes:
    message: dict[str, object] = {"role": "assistant", "content": "Done."}
    if seen < calls:
        name, arguments = (
            ("get_member", {"member_id": "M00000"}),
            ("lend", {"member_id": "M00000", "thing_id": "T00000"}),
        )
        chosen = arguments if seen == 1 else name
        function = {"name": chosen[0], "arguments": json.dumps(chosen[1])}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{seen}", "type": "function", "function": function}],
        }
    choice = {"index": 0, "finish_reason": "tool_calls" if seen < calls else "stop", "message": message}
    usage = {"prompt_tokens": 500 + 50 * seen, "completion_tokens": 20, "total_tokens": 520 + 50 * seen}
    return json.dumps({"object": "chat.completion", "model": "scripted", "choices": [choice], "usage": usage}).encode()


@contextmanager
def running(latency_s: float, calls: int) -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    command = [sys.executable, "-m", "perf.latency_server", str(latency_s), str(calls)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), int(sys.argv[2])))
