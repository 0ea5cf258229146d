"""A socket to another process, on the event loop: one frame out, one frame in.

What comes from the other side is hostile input: a frame that is too long, or that nobody asked for, ends the channel.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any

from envscaler.sandbox.inside.wire import HEADER_BYTES

_CHUNK_BYTES = 65_536
_NOTHING = memoryview(b"")


class ChannelClosed(Exception):
    """The other side is gone, or has sent what it must not send."""


class _Answer:
    """What a task awaits that has sent a request; when the answer is there, the task goes on at once.

    With a future of asyncio it would go on in the loop's next turn, which looks at all sockets again first.
    """

    __slots__ = ("_asyncio_future_blocking", "_awaited", "_body", "_error", "_loop", "_wake", "done")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asyncio_future_blocking = False  # by this name a task knows what it can wait for
        self._wake: Callable[[_Answer], object] | None = None
        self._awaited: Context | None = None
        self._body = b""
        self._error: BaseException | None = None
        self.done = False

    def __await__(self) -> Generator[_Answer, None, bytes]:
        if not self.done:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    def give(self, body: bytes) -> None:
        """Have the task go on, before this returns; not to be called by a task."""
        self.done, self._body = True, body
        if self._wake is not None and self._awaited is not None:
            self._awaited.run(self._wake, self)

    def fail(self, error: BaseException) -> None:
        """Have the task go on with an error, soon."""
        self.done, self._error = True, error
        if self._wake is not None:
            self._loop.call_soon(self._wake, self, context=self._awaited)

    # -- what a task asks of it -----------------------------------------------------------------------------

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop in which it is awaited."""
        return self._loop

    def add_done_callback(self, wake: Callable[[_Answer], object], *, context: Context) -> None:
        """Say how the task goes on."""
        self._wake, self._awaited = wake, context

    def result(self) -> bytes:
        """The body of the answer.

        Raises:
            ChannelClosed: if there is none.
            CancelledError: if it is not wanted any more.
        """
        if self._error is not None:
            raise self._error
        return self._body

    def cancel(self, msg: Any = None) -> bool:
        """Have the task go on without; False if it does already."""
        if self.done:
            return False
        self.fail(asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg))
        return True


class Channel:
    """Request and response over one socket; never two requests at a time."""

    def __init__(self, sock: socket.socket, max_frame_bytes: int) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._max_frame_bytes = max_frame_bytes
        self._loop = asyncio.get_running_loop()
        self._beginning = bytearray()
        """What has come of a frame that is not complete."""
        self._unsent = _NOTHING
        self._answer: _Answer | None = None
        self.closed = False
        self._loop.add_reader(sock, self._readable)

    def request(self, frame: bytes) -> _Answer:
        """Send a frame; what is returned is to be awaited and gives the body of the next one that comes back.

        A caller that is cancelled there must close the channel: the answer would be taken for that of the next request.

        Raises:
            ChannelClosed: if there is none.
        """
        if self.closed:
            raise ChannelClosed
        self._answer = answer = _Answer(self._loop)
        if frame:
            self._send(frame)
        return answer

    async def receive(self) -> bytes:
        """The next frame, without asking for it."""
        return await self.request(b"")

    def post(self, frame: bytes) -> bool:
        """Send a small frame that has no answer, now or not at all; return whether it went."""
        if self.closed:
            return False
        try:
            return self._sock.send(frame) == len(frame)
        except OSError:
            return False

    async def request_with(self, frame: bytes, descriptor: int) -> bytes:
        """As `request` for a small frame, with a file descriptor to go with it."""
        if self.closed:
            raise ChannelClosed
        try:
            sent = socket.send_fds(self._sock, [frame], [descriptor])
        except OSError as error:
            raise ChannelClosed from error
        return await self.request(frame[sent:])

    def _send(self, frame: bytes) -> None:
        try:
            sent = self._sock.send(frame)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self.close()
            raise ChannelClosed from error
        if sent < len(frame):
            self._unsent = memoryview(frame)[sent:]
            self._loop.add_writer(self._sock, self._writable)

    def _writable(self) -> None:
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if not self._unsent:
            self._unsent = _NOTHING  # an empty part of a frame would keep all of it
            self._loop.remove_writer(self._sock)

    def _readable(self) -> None:
        try:
            chunk = self._sock.recv(_CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        answer = self._answer
        if not chunk or answer is None or answer.done or self._unsent:
            self.close()
            return
        if self._beginning:
            self._beginning += chunk
        frame = self._beginning or chunk
        size = HEADER_BYTES + int.from_bytes(frame[:HEADER_BYTES], "big") if len(frame) >= HEADER_BYTES else None
        if size is not None and (size > self._max_frame_bytes or len(frame) > size):
            self.close()
        elif len(frame) == size:
            body = bytes(memoryview(frame)[HEADER_BYTES:])
            self._beginning, self._answer = bytearray(), None
            answer.give(body)
        elif not self._beginning:
            self._beginning += chunk

    def close(self) -> None:
        """Close the socket and fail whoever waits; idempotent."""
        if self.closed:
            return
        writing, self._unsent = bool(self._unsent), _NOTHING
        self.closed = True
        if not self._loop.is_closed():
            self._loop.remove_reader(self._sock)
            if writing:  # without a writer there it costs ten times as much
                self._loop.remove_writer(self._sock)
        self._sock.close()
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done:
            answer.fail(ChannelClosed())
