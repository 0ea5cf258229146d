"""A socket to another process, on the event loop: one frame out, one frame in.

What comes from the other side is hostile input: a frame that is too long, or that nobody asked for, ends the channel.
"""

from __future__ import annotations

import asyncio
import socket

from envscaler.sandbox.inside.wire import HEADER_BYTES

_CHUNK_BYTES = 262_144


class ChannelClosed(Exception):
    """The other side is gone, or has sent what it must not send."""


class Channel:
    """Request and response over one socket; never two requests at a time."""

    def __init__(self, sock: socket.socket, max_frame_bytes: int) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._max_frame_bytes = max_frame_bytes
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._waiter: asyncio.Future[bytes] | None = None
        self._room: asyncio.Future[None] | None = None
        """Whoever waits until more can be sent."""
        self.closed = False
        self._loop.add_reader(sock, self._readable)

    async def request(self, frame: bytes) -> bytes:
        """Send a frame and return the body of the next one that comes back.

        A caller that is cancelled here must close the channel: the answer would be taken for that of the next request.

        Raises:
            ChannelClosed: if there is none.
        """
        if self.closed:
            raise ChannelClosed
        self._waiter = self._loop.create_future()
        try:
            await self._send(frame)
            return await self._waiter
        finally:
            waiter, self._waiter = self._waiter, None
            if waiter is not None and waiter.done() and not waiter.cancelled():
                # When sending fails nobody waits any more, and the loop would complain of an error never looked at.
                waiter.exception()

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

    async def _send(self, frame: bytes) -> None:
        try:
            sent = self._sock.send(frame) if frame else 0
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self.close()
            raise ChannelClosed from error
        # Not sock_sendall: when the socket is closed in the meantime, that waits for ever.
        while sent < len(frame):
            await self._until_room()
            try:
                sent += self._sock.send(memoryview(frame)[sent:])
            except BlockingIOError:
                continue
            except OSError as error:
                self.close()
                raise ChannelClosed from error

    async def _until_room(self) -> None:
        room = self._room = self._loop.create_future()
        self._loop.add_writer(self._sock, _done, room)
        try:
            await room
        finally:
            self._room = None
            if not self.closed:
                self._loop.remove_writer(self._sock)

    def _readable(self) -> None:
        try:
            chunk = self._sock.recv(_CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk or self._waiter is None or self._waiter.done():
            self.close()
            return
        buffer = self._buffer
        buffer += chunk
        if len(buffer) < HEADER_BYTES:
            return
        size = HEADER_BYTES + int.from_bytes(buffer[:HEADER_BYTES], "big")
        if size > self._max_frame_bytes or len(buffer) > size:
            self.close()
        elif len(buffer) == size:
            body = bytes(memoryview(buffer)[HEADER_BYTES:])
            self._buffer = bytearray()
            self._waiter.set_result(body)

    def close(self) -> None:
        """Close the socket and fail whoever waits; idempotent."""
        if self.closed:
            return
        self.closed = True
        if not self._loop.is_closed():
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
        self._sock.close()
        for waiting in (self._waiter, self._room):
            if waiting is not None and not waiting.done():
                waiting.set_exception(ChannelClosed())


def _done(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_result(None)
