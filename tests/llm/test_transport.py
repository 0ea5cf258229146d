"""How long is waited: the laws of back-off and of Retry-After."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.llm import RetryPolicy
from envscaler.llm.transport import retry_after_s

NOW = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 1e6))
def test_a_wait_is_never_shorter_than_asked_nor_longer_than_the_cap_allows(
    failures: int, chance: float, asked: float | None
) -> None:
    policy = RetryPolicy(base_s=0.5, cap_s=60, random=lambda: chance)
    wait = policy.wait_s(failures, asked)
    assert wait > 0
    if asked is None:
        assert wait <= 60
    else:
        assert asked <= wait <= asked + 60


def test_waits_double_until_the_cap() -> None:
    policy = RetryPolicy(base_s=1, cap_s=10, random=lambda: 1.0)
    assert [policy.wait_s(failures, None) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("3", 3.0), ("0.25", 0.25), ("-4", 0.0), ("", None), ("soon", None), ("nan", None), ("inf", None), (None, None)],
)
def test_retry_after_in_seconds(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, now=NOW) == seconds


@given(st.integers(-(10**6), 10**6))
def test_retry_after_as_a_date_is_the_time_until_then(seconds: int) -> None:
    moment = NOW + timedelta(seconds=seconds)
    assert retry_after_s(format_datetime(moment, usegmt=True), now=NOW) == max(0, seconds)
