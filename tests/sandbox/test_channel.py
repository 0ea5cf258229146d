"""A channel gives a request its answer and nothing else, in whatever pieces both travel."""

from __future__ import annotations

import asyncio
import contextvars
import socket
from collections.abc import Iterator

import pytest

from envscaler.sandbox.channel import Channel, ChannelClosed

pytestmark = pytest.mark.anyio

MAX_BYTES = 3_000_000


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def channel_of(ends: tuple[socket.socket, socket.socket]) -> Channel:
    ends[1].setblocking(False)
    return Channel(ends[0], MAX_BYTES)


async def read(theirs: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        parts += await asyncio.get_running_loop().sock_recv(theirs, size - len(parts))
    return parts


@pytest.mark.parametrize("size", [0, 1, 65_531, 65_532, 65_533, 2_000_000])
async def test_requests_and_answers_of_any_size_arrive_whole(
    ends: tuple[socket.socket, socket.socket], size: int
) -> None:
    channel, body = channel_of(ends), bytes(n % 251 for n in range(size))

    async def echo() -> None:
        got = await read(ends[1], 4 + size)
        await asyncio.get_running_loop().sock_sendall(ends[1], got)

    for _ in range(2):
        other = asyncio.create_task(echo())
        assert await channel.request(framed(body)) == body
        await other
    channel.close()


async def test_an_answer_that_comes_byte_by_byte_is_one_answer(ends: tuple[socket.socket, socket.socket]) -> None:
    channel = channel_of(ends)

    async def ask() -> bytes:
        return await channel.request(b"?")

    asking = asyncio.create_task(ask())
    for place in range(9):
        await asyncio.sleep(0.001)
        ends[1].send(framed(b"hello")[place : place + 1])
    assert await asking == b"hello"
    channel.close()


@pytest.mark.parametrize("answer", [framed(b"a") + b"b", framed(b"a") * 2, (MAX_BYTES + 1).to_bytes(4, "big"), b""])
async def test_more_than_was_asked_for_or_nothing_ends_the_channel(
    ends: tuple[socket.socket, socket.socket], answer: bytes
) -> None:
    channel = channel_of(ends)
    ends[1].send(answer) if answer else ends[1].close()
    with pytest.raises(ChannelClosed):
        await channel.request(b"?")
    assert channel.closed
    with pytest.raises(ChannelClosed):
        await channel.request(b"?")


async def test_an_answer_to_a_request_that_is_not_out_yet_ends_the_channel(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    channel = channel_of(ends)
    ends[1].send(framed(b"early"))
    with pytest.raises(ChannelClosed):
        await channel.request(framed(bytes(2_000_000)))
    assert channel.closed


async def test_who_is_cancelled_goes_on_and_its_answer_is_nobodys(ends: tuple[socket.socket, socket.socket]) -> None:
    channel = channel_of(ends)

    async def ask() -> bytes:
        return await channel.request(b"?")

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    assert asking.cancel("enough")
    with pytest.raises(asyncio.CancelledError):
        await asking
    ends[1].send(framed(b"late"))
    await asyncio.sleep(0.01)
    assert channel.closed


async def test_closing_ends_the_waiting(ends: tuple[socket.socket, socket.socket]) -> None:
    channel = channel_of(ends)
    asyncio.get_running_loop().call_later(0.001, channel.close)
    with pytest.raises(ChannelClosed):
        await channel.request(b"?")


async def test_tasks_go_on_in_their_own_context_and_a_timeout_reaches_them(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    channel, mine = channel_of(ends), contextvars.ContextVar("mine", default="nobody's")

    async def ask(name: str) -> tuple[bytes, str, asyncio.Task[object] | None]:
        mine.set(name)
        return await channel.request(b"?"), mine.get(), asyncio.current_task()

    for name in ("first", "second"):
        asking = asyncio.create_task(ask(name))
        await asyncio.sleep(0)
        ends[1].send(framed(b"!"))
        assert await asking == (b"!", name, asking)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await channel.request(b"?")
    channel.close()
