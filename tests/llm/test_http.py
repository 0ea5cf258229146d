"""Requests over connections: what is sent, through which proxy, and what comes of everything that is no HTTP."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from envscaler.llm.http import Http, NoReply, NoSuchUrl

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def answering(*replies: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that sends such bytes, one after the other, and closes; its address, and the heads of requests."""
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head.decode())
        _, _, size = head.lower().partition(b"content-length:")
        await reader.readexactly(int(size.split()[0]) if size else 0)
        writer.write(replies[min(len(heads), len(replies)) - 1])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


@asynccontextmanager
async def opened(base_url: str, **options: object) -> AsyncIterator[Callable[[bytes | None], Awaitable[bytes]]]:
    """Sends bodies to `/ask` below a base URL."""
    http = Http(base_url, **{"api_key": None, "headers": {}, **options})  # type: ignore[arg-type]

    async def send(body: bytes | None) -> bytes:
        return (await http.send("/ask", body)).content

    try:
        yield send
    finally:
        await http.aclose()


def fields(head: str) -> dict[str, str]:
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in head.splitlines()[1:])}


async def test_what_is_sent() -> None:
    async with answering(OK) as (host, heads), opened(f"http://{host}/v1/", api_key="k", headers={}) as send:
        assert await send(b'{"a": 1}') == b"{}"
    assert heads[0].startswith("POST /v1/ask HTTP/1.1\r\n")
    sent = fields(heads[0])
    assert (sent["authorization"], sent["content-type"], sent["content-length"]) == (
        "Bearer k",
        "application/json",
        "8",
    )
    assert sent["user-agent"].startswith("envscaler/")


async def test_headers_that_were_given_win_in_any_case_of_their_names() -> None:
    async with answering(OK) as (host, heads), opened(f"http://{host}", headers={"AUTHORIZATION": "mine"}) as send:
        await send(b"{}")
    assert heads[0].lower().count("authorization:") == 1
    assert fields(heads[0])["authorization"] == "mine"


async def test_a_query_of_the_base_url_is_kept() -> None:
    async with answering(OK) as (host, heads), opened(f"http://{host}/v1?api-version=7") as send:
        await send(b"{}")
        await send(None)
    assert [head.splitlines()[0] for head in heads] == [
        "POST /v1/ask?api-version=7 HTTP/1.1",
        "GET /v1/ask?api-version=7 HTTP/1.1",
    ]


async def test_no_account_of_netrc_is_used(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login somebody password else\n")  # type: ignore[operator]
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))  # type: ignore[operator]
    async with answering(OK) as (host, heads), opened(f"http://{host}", api_key="k") as send:
        await send(b"{}")
    assert fields(heads[0])["authorization"] == "Bearer k"


async def test_packed_replies_are_unpacked() -> None:
    packed = gzip.compress(b'{"long": 1}')
    reply = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed
    async with answering(reply) as (host, _), opened(f"http://{host}") as send:
        assert await send(b"{}") == b'{"long": 1}'


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_is_used(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(OK) as (proxy, heads):
        monkeypatch.setenv(variable, f"http://user:pass@{proxy}")
        async with opened("http://models.invalid/v1", api_key="k") as send:
            assert await send(b"{}") == b"{}"
    assert heads[0].startswith("POST http://models.invalid/v1/ask HTTP/1.1\r\n")
    assert fields(heads[0])["authorization"] == "Bearer k"
    assert fields(heads[0])["proxy-authorization"] == "Basic dXNlcjpwYXNz"


async def test_hosts_without_proxy_are_asked_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(OK) as (host, heads):
        monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with opened(f"http://{host}") as send:
            await send(b"{}")
    assert heads[0].startswith("POST /ask ")


async def test_cookies_are_not_kept() -> None:
    cookie = OK.replace(b"Connection", b"Set-Cookie: a=b\r\nConnection")
    async with answering(cookie) as (host, heads), opened(f"http://{host}") as send:
        await send(b"{}")
        await send(b"{}")
    assert "cookie" not in fields(heads[1])


async def test_a_redirection_to_another_host_does_not_take_the_key_along() -> None:
    async with answering(OK) as (other, heads):
        moved = f"HTTP/1.1 307 Moved\r\nLocation: http://localhost:{other.partition(':')[2]}/x\r\n\r\n".encode()
        async with answering(moved) as (host, _), opened(f"http://{host}", api_key="k") as send:
            assert await send(b"{}") == b"{}"
    assert heads[0].startswith("POST /x ")
    assert "authorization" not in fields(heads[0])


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}", id="cut"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", id="bad chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", id="not packed"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", id="a head without end"),
        pytest.param(b"HTTP/1.1 302 Moved\r\nLocation: /ask\r\n\r\n", id="a redirection to itself"),
    ],
)
async def test_what_is_no_whole_reply_is_said_in_one_line(reply: bytes) -> None:
    async with answering(reply) as (host, _), opened(f"http://{host}") as send:
        with pytest.raises(NoReply) as caught:
            await send(b"{}")
    assert str(caught.value).strip()


async def test_nobody_listens() -> None:
    async with answering(OK) as (host, _):
        pass
    async with opened(f"http://{host}") as send:
        with pytest.raises(NoReply, match=r"ConnectionRefusedError: .*(refused|failed)"):
            await send(b"{}")


@pytest.mark.parametrize(
    "base_url", ["http://", "http://a..b/v1", f"http://{'a' * 70}.org", "ftp://host/v1", "host/v1"]
)
async def test_what_is_no_url_is_not_tried_again(base_url: str) -> None:
    async with opened(base_url) as send:
        with pytest.raises(NoSuchUrl):
            await send(b"{}")
