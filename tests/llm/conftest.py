"""Fixtures of the model layer's tests: endpoints that wait no real time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from envscaler.llm import Endpoint, EndpointState, RetryPolicy


@dataclass
class Clock:
    """Time that passes only when somebody sleeps."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)
    while_asleep: Callable[[], None] | None = None
    """Called at each sleep, to change the world meanwhile."""

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if self.while_asleep is not None:
            self.while_asleep()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def states() -> list[EndpointState]:
    """What the outage hook was told."""
    return []


OpenEndpoint = Callable[..., Endpoint]


@pytest.fixture
async def open_endpoint(clock: Clock, states: list[EndpointState]) -> AsyncIterator[OpenEndpoint]:
    """Opens endpoints with the clock above; they are closed after the test."""
    opened: list[Endpoint] = []

    def open_one(base_url: str, *, patience_s: float = 3600.0, attempts: int = 6, **options: object) -> Endpoint:
        retry = RetryPolicy(
            patience_s=patience_s, attempts=attempts, clock=clock.time, sleep=clock.sleep, random=lambda: 1.0
        )
        opened.append(Endpoint(base_url, retry=retry, on_outage=states.append, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for endpoint in opened:
        await endpoint.aclose()
