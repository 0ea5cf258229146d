"""`Http`: one request to a server over connections that are kept open, without any retry.

What is tried again, and when, is `endpoint`'s business. Over aiohttp itself: the official client takes three times the
CPU for each request, and a second to import.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp
import certifi
from multidict import CIMultiDict


class NoReply(Exception):
    """There was no whole reply, and why; the request may or may not have been received."""


class NoSuchUrl(Exception):
    """The URL is none to which a request can be sent."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply, of whatever status."""

    status: int
    headers: Mapping[str, str]
    """Names in any case."""
    content: bytes


class Http:
    """Connections to one server. Proxies are taken from the environment, as other programs do (`HTTPS_PROXY` …)."""

    def __init__(self, base_url: str, *, api_key: str | None, headers: Mapping[str, str]) -> None:
        """
        Args:
            base_url: to which paths are added; user and password in it are sent as a header, a query is kept.
            api_key: sent as a bearer token; no other is ever looked for in the environment.
            headers: of every request; they win.
        """
        parts = urlsplit(base_url)
        host = parts.netloc.rpartition("@")[2]
        self._parts = parts._replace(netloc=host, path=parts.path.rstrip("/"), fragment="")
        self._headers = CIMultiDict(
            {
                "Accept": "application/json",
                "Authorization": _authorization(parts.username, parts.password, api_key),
                "Content-Type": "application/json",
                "User-Agent": f"envscaler/{version('envscaler')}",
            }
        )
        self._headers.update(headers)
        self._proxy = _proxy(parts.scheme, host)
        self._session: aiohttp.ClientSession | None = None

    async def send(self, path: str, body: bytes | None) -> HttpReply:
        """POST a body to a path below the base URL, or GET the path where there is none.

        Raises:
            NoReply: the server was not reached, or went away.
            NoSuchUrl: it can be no server's.
        """
        parts = self._parts
        url = urlunsplit(parts._replace(path=parts.path + path))
        method = "GET" if body is None else "POST"
        try:
            async with self._opened().request(method, url, data=body, proxy=self._proxy) as response:
                return HttpReply(response.status, response.headers, await response.read())
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, UnicodeError) as error:
            raise NoSuchUrl(f"{type(error).__name__}: {error}") from error
        except (aiohttp.ClientError, OSError) as error:
            cause = _root(error)
            raise NoReply(f"{type(cause).__name__}: {str(cause) or str(error)}") from error

    async def aclose(self) -> None:
        """Close all connections; idempotent."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            tls = _tls() if self._parts.scheme == "https" else True
            self._session = aiohttp.ClientSession(
                # How many there are at once is the throttle's business, how long one may take its sender's.
                connector=aiohttp.TCPConnector(limit=0, ssl=tls),
                timeout=aiohttp.ClientTimeout(total=None),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def _authorization(user: str | None, password: str | None, api_key: str | None) -> str:
    if user is None:
        return f"Bearer {api_key or 'none'}"
    pair = f"{unquote(user)}:{unquote(password or '')}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for a host."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return None if proxy is None or urllib.request.proxy_bypass(host) else proxy


def _tls() -> ssl.SSLContext:
    """The certificates of the system, and where it has none those that certifi carries."""
    context = ssl.create_default_context()
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        context.load_verify_locations(certifi.where())
    return context


def _root(error: BaseException) -> BaseException:
    """The innermost cause, which names what happened (refused, reset, no such host)."""
    while (cause := error.__cause__ or error.__context__) is not None and not isinstance(cause, asyncio.CancelledError):
        error = cause
    return error
