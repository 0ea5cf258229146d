"""`Faults`: what went wrong between a run and its models, for its report."""

from __future__ import annotations

from envscaler.llm.chat import Mending
from envscaler.record import Record


class Faults(Record):
    """Requests and replies that were tried again or, after the last try, given up by the unit that asked; and replies
    that were not as they should have been."""

    requests: dict[str, int] = {}
    """Failed HTTP requests by kind: `rate_limited`, `server_error`, `timeout`, `connection`, `unreadable`."""
    replies: int = 0
    """Replies that arrived and could not be used: empty, withheld, refusals, of another form, or wrong when tried."""
    mended: dict[Mending, int] = {}
    """Replies that were used after something in their form was made good, by what that was."""
