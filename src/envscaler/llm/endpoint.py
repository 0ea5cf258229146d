"""`Endpoint`: sends one JSON request to an OpenAI-compatible server until it is answered, refused or given up.

All retries of transport happen here, and nowhere else. What bodies and replies mean is the business of the callers.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from envscaler.errors import EndpointRejected, EndpointUnavailable, EnvScalerError, RequestFailed
from envscaler.llm.silence import Silence
from envscaler.llm.throttle import Throttle
from envscaler.llm.transport import EndpointState, Fault, OutageHook, RetryPolicy, TransportStats, retry_after_s
from envscaler.state import JsonValue

if TYPE_CHECKING:
    from envscaler.llm.http import Http, HttpReply

T = TypeVar("T")

_KEY_LIKE = re.compile(r"\b(?:(?:sk|key|gsk|xai|hf)[-_]|(?:Bearer|Basic) )[\w*.=+/-]{6,}")
_SHOWN_CHARACTERS = 300
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
        self._away = False
        """Whether something else than too many requests is among the faults since the last answer."""
        self._silence = Silence(self.retry, self._silent)
        self._http: Http | None = None

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
        self._silence.close()
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    # -- one attempt ----------------------------------------------------------------------------------------

    async def _attempt(self, path: str, body: dict[str, Any] | None, read: Callable[[JsonValue], T]) -> T | Fault:
        # Imported late: the package takes a while to import, and commands without an endpoint must not wait for it.
        from envscaler.llm.http import Http, NoReply, NoSuchUrl

        if self._http is None:
            self._http = Http(self.base_url, api_key=self._api_key, headers=self._headers)
        sent = None if body is None else msgspec.json.encode(body)
        async with self.throttle.slot() as slot:
            self.stats.sent += 1
            try:
                async with self._silence.waited_for(), asyncio.timeout(self._timeout_s):
                    reply = await self._http.send(path, sent)
            except TimeoutError:
                slot.ended = "overloaded"
                return Fault("timeout", f"no answer within {self._timeout_s:g} s")
            except NoReply as error:
                return Fault("connection", self._clean(str(error)))
            except NoSuchUrl as error:
                raise self._rejected(
                    self._clean(f"no request can be sent there ({error}); check the base URL")
                ) from None
            if not 200 <= reply.status < 300:
                fault = self._status(reply)
                if fault.status in _OVERLOADED:
                    slot.ended = "overloaded"
                    if fault.retry_after_s:
                        # Never beyond the patience: whoever waits has to find out that it is used up.
                        self.throttle.hold(min(fault.retry_after_s, self.retry.patience_s))
                return fault
            slot.ended = "answered"
        try:
            return read(json.loads(reply.content))
        except (ValueError, RecursionError):
            return Fault("unreadable", self._clean(f"the reply is not JSON: {_start(reply.content)}"))
        except Unreadable as error:
            return Fault("unreadable", self._clean(str(error)))

    def _status(self, reply: HttpReply) -> Fault:
        """What an error status means: a fault to try again, or an exception."""
        status = reply.status
        error = _error(reply.content)
        wait_s = retry_after_s(reply.headers.get("retry-after"))
        detail = f"HTTP {status}: {self._clean(_said(error))}"
        fields = error if isinstance(error, dict) else {}
        code = f"{fields.get('code') or ''} {fields.get('type') or ''}"
        if status == 429 and "insufficient_quota" in code:
            raise self._rejected(f"the quota of this key is used up; {detail}")
        if status == 429:
            return Fault("rate_limited", detail, wait_s, status)
        if status == 408:
            return Fault("timeout", detail, wait_s, status)
        if status == 409 or status >= 500:
            return Fault("server_error", detail, wait_s, status)
        if status in (400, 413, 422):
            raise RequestRefused(detail, status=status, code=code, param=str(fields.get("param") or ""))
        if status in (401, 403):
            raise self._rejected(f"the key is missing, wrong or not allowed to do this; check OPENAI_API_KEY; {detail}")
        if status == 404:
            raise self._rejected(f"no such model, or no such path: check the model's name and the base URL; {detail}")
        raise self._rejected(detail)

    def _rejected(self, why: str) -> EndpointRejected:
        self.stats.failed += 1
        return EndpointRejected(f"{self.public_url}: {why}")

    def _clean(self, text: str) -> str:
        """A text of the endpoint's in one short line, without keys."""
        for secret in (self._api_key, *self._headers.values()):
            if secret:
                text = text.replace(secret, "***")
        text = " ".join(_KEY_LIKE.sub("***", text).replace(self.base_url, self.public_url).split())
        return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " …"

    # -- health ---------------------------------------------------------------------------------------------

    def _up(self) -> None:
        if self._told_at is not None and self._down_since is not None:
            if self._away:
                self.throttle.came_back()
            if self._on_outage is not None:
                down_for_s = self.retry.clock() - self._down_since
                self._on_outage(EndpointState(self.public_url, True, down_for_s, 0.0, None))
        self._down_since = self._told_at = None
        self._away = False

    def _silent(self, since: float, waiting: int) -> None:
        """Requests wait, and none has been answered for long: an outage of which no fault tells yet."""
        if self._down_since is None:
            self._down_since = since
        self._away = True
        now = self.retry.clock()
        left_s = max(0.0, self.retry.patience_s - (now - self._down_since))
        self._tell(now, left_s, Fault("timeout", _unanswered(waiting)))

    def _down(self, fault: Fault, delay: float) -> float:
        """Note a fault; how long to wait before the next attempt.

        Raises:
            EndpointUnavailable: if the patience is used up.
        """
        now = self.retry.clock()
        if self._down_since is None:
            self._down_since = now
        self._away = self._away or fault.kind != "rate_limited"
        down_for_s = now - self._down_since
        left_s = self.retry.patience_s - down_for_s
        if left_s <= 0:
            self.stats.failed += 1
            raise EndpointUnavailable(
                f"{self.public_url} gave no answer for {down_for_s:.0f} s ({fault.detail}); "
                "what was made is kept, and the same command goes on where it stopped"
            )
        if down_for_s >= self.retry.notify_after_s:
            self._tell(now, left_s, fault)
        return min(delay, left_s)

    def _tell(self, now: float, left_s: float, fault: Fault) -> None:
        """Tell the hook of an outage, if it was not told just now."""
        if self._told_at is not None and now - self._told_at < self.retry.notify_every_s:
            return
        assert self._down_since is not None
        self.stats.outages += self._told_at is None
        self._told_at = now
        if self._on_outage is not None:
            self._on_outage(EndpointState(self.public_url, False, now - self._down_since, left_s, fault))


def _unanswered(waiting: int) -> str:
    return "the request at work is not answered" if waiting == 1 else f"none of {waiting} requests at work is answered"


def public_url(base_url: str) -> str:
    """A URL without user, password, query and fragment."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _error(content: bytes) -> JsonValue:
    """What the body of an error holds: the object in OpenAI's form, other JSON, or the text."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")
    return value.get("error", value) if isinstance(value, dict) else value


def _said(error: JsonValue) -> str:
    """The text of an error: OpenAI's form, FastAPI's, or what there is."""
    if isinstance(error, dict):
        for key in ("message", "detail", "error", "msg"):
            if error.get(key):
                return error[key] if isinstance(error[key], str) else json.dumps(error[key], ensure_ascii=False)
        return json.dumps(error, ensure_ascii=False)
    return str(error) if error else "(no text)"


def _start(content: bytes) -> str:
    return repr(content[:80].decode("utf-8", "replace")) if content else "it is empty"
