"""The virtual clock's text form: ISO 8601 to microseconds since 1970 and back. Times without zone are UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1)


def clock_us(text: str) -> int:
    """Microseconds since 1970 of an ISO 8601 time.

    Raises:
        ValueError: if it is none.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def clock_text(microseconds: int) -> str:
    """ISO 8601 text, without zone, of microseconds since 1970."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()
