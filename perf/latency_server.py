"""A chat server that answers each request after the same time, however many there are: the ideal of an endpoint.

Started as a process of its own: `python -m perf.latency_server SECONDS` prints its port and serves until it is ended.
Each conversation makes some tool calls, more or fewer as its task tells (`visitor 7`), and then says that it is done.
A GET tells when conversations began and when replies were sent.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from contextlib import AbstractContextManager
from zlib import crc32

from perf import serving

_TOOL = b'"role":"tool"'
_VISITOR = re.compile(rb"visitor (\d+)")
_FEWEST, _MOST = 3, 13


def replies_of(visitor: int) -> int:
    """How many replies the conversation about this visitor takes: 4 to 14, 9 on average, as if drawn."""
    return _FEWEST + crc32(b"%d" % visitor) % (_MOST - _FEWEST + 1) + 1


async def serve(latency_s: float) -> None:
    """Serve on a free port, which is printed."""

    begun: list[float] = []
    sent: list[float] = []

    async def reply(asked: bytes) -> tuple[int, bytes]:
        told = _VISITOR.search(asked)
        calls = replies_of(int(told.group(1)) if told else 0) - 1
        seen = asked.replace(b": ", b":").count(_TOOL)
        if not seen:
            begun.append(time.monotonic())
        body = _reply(seen, calls)
        await asyncio.sleep(latency_s)
        sent.append(time.monotonic())
        return 200, body

    await serving.serve(reply, lambda: {"begun": begun, "sent": sent})


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


def running(latency_s: float) -> AbstractContextManager[str]:
    """The base URL of a server in a process of its own."""
    return serving.running("perf.latency_server", latency_s)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
