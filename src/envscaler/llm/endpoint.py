"""`Endpoint`: sends one JSON request to an OpenAI-compatible server until it is answered, refused or given up.

All retries of transport happen here, and nowhere else. What bodies and replies mean is the business of the callers.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from envscaler.errors import EndpointRejected, EndpointUnavailable, EnvScalerError, RequestFailed, exception_text
from envscaler.llm.throttle import Throttle
from envscaler.llm.transport import EndpointState, Fault, OutageHook, RetryPolicy, TransportStats, retry_after_s
from envscaler.state import JsonValue

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

_KEY_LIKE = re.compile(r"\b(?:(?:sk|key|gsk|xai|hf)[-_]|(?:Bearer|Basic) )[\w*.=+/-]{6,}")
_SHOWN_CHARACTERS = 300
_CONNECTIONS = 100_000
"""Connections at once, more than the throttle ever lets through."""
_OVERLOADED = (408, 429, 503, 529)
"""Statuses that say that there is too much to do, now."""


class Unreadable(Exception):
    """Raised by a caller's reader: the body is not the reply it should be; the request is sent again."""


class RequestRefused(EnvScalerError):
    """The endpoint refused a request as it stands (status 400, 413 or 422). The caller knows what it asked for and
    says what that means; it never leaves this package."""

    def __init__(self, message: str, *, status: int, code: str, param: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param

    def names(self, *words: str) -> bool:
        """Whether the refusal speaks of one of these words."""
        text = f"{self.args[0]} {self.code} {self.param}".lower()
        return any(word in text for word in words)


class Endpoint:
    """One server, shared by all models that it serves: its connections, its throttle, its health, its counts."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 600.0,
        max_in_flight: int | None = None,
        retry: RetryPolicy | None = None,
        on_outage: OutageHook | None = None,
    ) -> None:
        """
        Args:
            max_in_flight: requests at once at most; None: as many as it turns out to answer the faster for.
        """
        self.base_url = base_url
        self.public_url = public_url(base_url)
        """The URL without credentials, for records, keys of the cache and messages."""
        self.stats = TransportStats()
        self.retry = retry or RetryPolicy()
        self._api_key = api_key
        self._headers = dict(headers or {})
        self._timeout_s = timeout_s
        self.throttle = Throttle(
            max_in_flight, clock=self.retry.clock, sleep=self.retry.sleep, random=self.retry.random
        )
        self._on_outage = on_outage
        self._down_since: float | None = None
        self._told_at: float | None = None
        self._client: AsyncOpenAI | None = None

    async def post(
        self,
        path: str,
        body: dict[str, Any],
        read: Callable[[JsonValue], T],
        *,
        tiny: Callable[[], Awaitable[bool]] | None = None,
    ) -> T:
        """Send `body` to `path` until `read` accepts the reply.

        Args:
            read: makes the result of the decoded reply; raises `Unreadable` when it is not what it should be.
            tiny: sends a request so small that any working endpoint answers it, and says whether it was answered.
                It tells an endpoint that is down from a request that it cannot answer. None: no such test.

        Raises:
            EndpointUnavailable: there was no answer for longer than the patience.
            EndpointRejected: key, model or path are refused.
            RequestFailed: the endpoint answers others, but not this one.
            RequestRefused: the endpoint finds fault with this request.
        """
        failures = own = 0
        while True:
            outcome = await self._attempt(path, body, read)
            if not isinstance(outcome, Fault):
                self.stats.answered += 1
                self._up()
                return outcome
            failures += 1
            self.stats.faults[outcome.kind] += 1
            # Being told to come later says nothing about the request, however often.
            own += outcome.kind != "rate_limited"
            suspect = outcome.kind != "rate_limited" and own % self.retry.attempts == 0
            if suspect and tiny is not None and await tiny():
                self.stats.failed += 1
                raise RequestFailed(f"{self.public_url} answers other requests, but not this one: {outcome.detail}")
            delay = self._down(outcome, self.retry.wait_s(failures, outcome.retry_after_s))
            self.stats.waited_s += delay
            await self.retry.sleep(delay)

    async def post_once(self, path: str, body: dict[str, Any], read: Callable[[JsonValue], T]) -> T | Fault:
        """One attempt, without any retry: a fault is returned.

        Raises:
            EndpointRejected, RequestRefused: as `post`.
        """
        outcome = await self._attempt(path, body, read)
        if not isinstance(outcome, Fault):
            self._up()
        return outcome

    async def get_once(self, path: str) -> JsonValue | Fault:
        """What a GET of `path` gives, as JSON; no retry.

        Raises:
            EndpointRejected, RequestRefused: as `post`.
        """
        return await self._attempt(path, None, lambda value: value)

    async def aclose(self) -> None:
        """Close all connections; idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    # -- one attempt ----------------------------------------------------------------------------------------

    async def _attempt(self, path: str, body: dict[str, Any] | None, read: Callable[[JsonValue], T]) -> T | Fault:
        client = self._opened()
        # Imported late: the package takes a second to import, and commands without an endpoint must not wait for it.
        import openai

        async with self.throttle.slot() as slot:
            self.stats.sent += 1
            try:
                # The client's own limit is one for each read; a server that drips bytes would never reach it.
                async with asyncio.timeout(self._timeout_s):
                    if body is None:
                        content = await client.get(path, cast_to=bytes)
                    else:
                        # `post` leaves out the typed layers of `chat.completions.create`, which take 7 ms a call.
                        content = await client.post(path, cast_to=bytes, body=body)
            except (TimeoutError, openai.APIConnectionError) as error:
                root = _root(error)
                # The client also calls some connections that were cut a time-out.
                if isinstance(root, TimeoutError):
                    slot.ended = "overloaded"
                    return Fault("timeout", f"no answer within {self._timeout_s:g} s")
                return Fault("connection", self._clean(exception_text(type(root).__name__, str(root) or str(error))))
            except openai.APIStatusError as error:
                fault = self._status(error)
                if fault.status in _OVERLOADED:
                    slot.ended = "overloaded"
                    if fault.retry_after_s:
                        # Never beyond the patience: whoever waits has to find out that it is used up.
                        self.throttle.hold(min(fault.retry_after_s, self.retry.patience_s))
                return fault
            slot.ended = "answered"
        try:
            return read(json.loads(content))
        except (ValueError, RecursionError):
            return Fault("unreadable", self._clean(f"the reply is not JSON: {_start(content)}"))
        except Unreadable as error:
            return Fault("unreadable", self._clean(str(error)))

    def _opened(self) -> AsyncOpenAI:
        if self._client is None:
            from openai import AsyncOpenAI

            base_url, credentials = _without_credentials(self.base_url)
            # A key of None would make the client look for one in the environment, which may belong to another host.
            self._client = AsyncOpenAI(
                base_url=base_url,
                api_key=self._api_key or "none",
                default_headers={**credentials, **self._headers},
                timeout=self._timeout_s,
                max_retries=0,
                http_client=_http_client(),
            )
        return self._client

    def _status(self, error: Any) -> Fault:
        """What an error status means: a fault to try again, or an exception."""
        status: int = error.status_code
        said = self._clean(_said(error))
        detail = f"HTTP {status}: {said}"
        code = f"{error.code or ''} {error.type or ''}"
        if status == 429 and "insufficient_quota" in code:
            self._reject(f"the quota of this key is used up; {detail}")
        if status == 429:
            return Fault("rate_limited", detail, _asked(error), status)
        if status == 408:
            return Fault("timeout", detail, _asked(error), status)
        if status == 409 or status >= 500:
            return Fault("server_error", detail, _asked(error), status)
        if status in (400, 413, 422):
            raise RequestRefused(detail, status=status, code=code, param=str(error.param or ""))
        if status in (401, 403):
            self._reject(f"the key is missing, wrong or not allowed to do this; check OPENAI_API_KEY; {detail}")
        if status == 404:
            self._reject(f"no such model, or no such path: check the model's name and the base URL; {detail}")
        self._reject(detail)
        raise AssertionError("unreachable")

    def _reject(self, why: str) -> None:
        self.stats.failed += 1
        raise EndpointRejected(f"{self.public_url}: {why}")

    def _clean(self, text: str) -> str:
        """A text of the endpoint's in one short line, without keys."""
        for secret in (self._api_key, *self._headers.values()):
            if secret:
                text = text.replace(secret, "***")
        text = " ".join(_KEY_LIKE.sub("***", text).replace(self.base_url, self.public_url).split())
        return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " …"

    # -- health ---------------------------------------------------------------------------------------------

    def _up(self) -> None:
        if self._told_at is not None and self._down_since is not None and self._on_outage is not None:
            down_for_s = self.retry.clock() - self._down_since
            self._on_outage(EndpointState(self.public_url, True, down_for_s, 0.0, None))
        self._down_since = self._told_at = None

    def _down(self, fault: Fault, delay: float) -> float:
        """Note a fault; how long to wait before the next attempt.

        Raises:
            EndpointUnavailable: if the patience is used up.
        """
        now = self.retry.clock()
        if self._down_since is None:
            self._down_since = now
        down_for_s = now - self._down_since
        left_s = self.retry.patience_s - down_for_s
        if left_s <= 0:
            self.stats.failed += 1
            raise EndpointUnavailable(
                f"{self.public_url} gave no answer for {down_for_s:.0f} s ({fault.detail}); "
                "what was made is kept, and the same command goes on where it stopped"
            )
        due = self._told_at is None or now - self._told_at >= self.retry.notify_every_s
        if down_for_s >= self.retry.notify_after_s and due:
            self.stats.outages += self._told_at is None
            self._told_at = now
            if self._on_outage is not None:
                self._on_outage(EndpointState(self.public_url, False, down_for_s, left_s, fault))
        return min(delay, left_s)


def _http_client() -> Any:
    """Connections by aiohttp: with hundreds open at once those of httpx take ten times the CPU."""
    import openai

    limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
        max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS
    )
    try:
        return openai.DefaultAioHttpClient(limits=limits)
    except RuntimeError:  # aiohttp cannot be had on every platform
        return openai.DefaultAsyncHttpxClient(limits=limits)


def public_url(base_url: str) -> str:
    """A URL without user, password, query and fragment."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _without_credentials(base_url: str) -> tuple[str, dict[str, str]]:
    """A URL without user and password, and the header that says the same; not all clients take them in the URL."""
    parts = urlsplit(base_url)
    if parts.username is None:
        return base_url, {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return urlunsplit(bare), {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _asked(error: Any) -> float | None:
    return retry_after_s(error.response.headers.get("retry-after"))


def _said(error: Any) -> str:
    """What the body of an error says: OpenAI's form, FastAPI's, or the text."""
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        for key in ("message", "detail", "error", "msg"):
            if isinstance(inner, dict) and inner.get(key):
                return inner[key] if isinstance(inner[key], str) else json.dumps(inner[key], ensure_ascii=False)
        return json.dumps(body, ensure_ascii=False)
    return str(body) if body else "(no text)"


def _root(error: BaseException) -> BaseException:
    """The innermost cause, which names what happened (refused, reset, no such host)."""
    if isinstance(error, TimeoutError):
        return error  # what was cancelled by it is no cause
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return error


def _start(content: bytes) -> str:
    return repr(content[:80].decode("utf-8", "replace")) if content else "it is empty"
