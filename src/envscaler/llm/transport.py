"""What can go wrong between here and an endpoint, how long to wait then, and how often it happened.

How a request is sent is `endpoint`'s business.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

FaultKind = Literal["rate_limited", "server_error", "timeout", "connection", "unreadable"]
"""Faults that are tried again: 429; 5xx and 409; no answer in time and 408; refused, reset or cut; a body that is
no reply (no JSON, an error object, no choices)."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One failed attempt that may be made again."""

    kind: FaultKind
    detail: str
    """What happened, for a reader; holds no secret."""
    retry_after_s: float | None = None
    """How long the endpoint asked to wait; None when it did not."""
    status: int | None = None


@dataclass(frozen=True, slots=True)
class EndpointState:
    """What the `on_outage` hook is told while an endpoint gives no answers, and once when it does again."""

    base_url: str
    up: bool
    down_for_s: float
    """Since the first failure after the last answer."""
    gives_up_in_s: float
    """What is left of the patience; 0.0 when it is up."""
    fault: Fault | None
    """The last fault; None when it is up."""


OutageHook = Callable[[EndpointState], None]


@dataclass(frozen=True)
class RetryPolicy:
    """When to try again and when to give up. Clock, sleep and randomness can be replaced, for tests."""

    base_s: float = 0.5
    """Mean of the first wait, before jitter; each further wait is twice as long."""
    cap_s: float = 60.0
    """Longest wait that is not asked for by the endpoint."""
    patience_s: float = 3600.0
    """How long an endpoint may give no answer at all before `EndpointUnavailable`."""
    attempts: int = 10
    """Failures of one request (rate limits apart) after which a tiny request finds out whether it is the endpoint
    that is down, or this request that it cannot answer."""
    notify_after_s: float = 5.0
    """How long an endpoint is down before the hook is told."""
    notify_every_s: float = 30.0
    silence_s: float = 60.0
    """How long no request that is at work is answered before the hook is told, where answers are usually quick; else
    three times as long as the slowest answer so far took."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    random: Callable[[], float] = random.random
    """A number in [0, 1)."""

    def wait_s(self, failures: int, retry_after_s: float | None) -> float:
        """How long to wait after so many failures in a row: exponential, between half and the whole of it, so that
        requests that failed together do not come back together. What the endpoint asks for is the least."""
        delay = min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, 32))
        delay *= 0.5 + self.random() / 2
        if retry_after_s is None:
            return delay
        # A little later than asked, never earlier: all who were told the same time must not come at once.
        return retry_after_s + min(delay, 0.1 * retry_after_s + self.base_s)


def retry_after_s(value: str | None, *, now: datetime | None = None) -> float | None:
    """The seconds that a `Retry-After` header asks for (a number or an HTTP date); None when it says nothing usable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    # NaN and infinity are floats too, and no time to wait.
    return max(0.0, seconds) if seconds < 1e9 else None


@dataclass
class TransportStats:
    """Counts of one endpoint since it was opened."""

    sent: int = 0
    """HTTP requests, each attempt counted."""
    answered: int = 0
    """Requests that got a usable reply in the end."""
    faults: Counter[str] = field(default_factory=Counter)
    """Failed attempts by `FaultKind`."""
    failed: int = 0
    """Requests given up (rejected, or the endpoint cannot answer them)."""
    waited_s: float = 0.0
    """Sum of all waits between attempts, over all requests."""
    outages: int = 0
    """Times that it was down for long enough to be told."""
    stepped_down: Counter[str] = field(default_factory=Counter)
    """Features that the endpoint refused and that were left out since: `json_schema`, `json_object` …"""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a run record."""
        return {
            "sent": self.sent,
            "answered": self.answered,
            "failed": self.failed,
            "faults": dict(sorted(self.faults.items())),
            "stepped_down": dict(sorted(self.stepped_down.items())),
            "waited_s": round(self.waited_s, 3),
            "outages": self.outages,
        }
