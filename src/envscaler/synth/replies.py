"""Replies that could not be used, counted by role and kind; the counts do not depend on the order in which they came.

What makes a reply unusable is decided in `roles.ask`.
"""

from __future__ import annotations

from collections.abc import Iterable

from envscaler.errors import ReplyFault
from envscaler.record import Record

MAX_EXAMPLES = 3
_LENGTH = 200


class Unusable(Record):
    """Replies in one role that could not be used for reasons of one kind; each was asked for again or given up."""

    stage: str
    role: str
    kind: ReplyFault
    count: int
    examples: tuple[str, ...] = ()
    """What was wrong with some of them: the first ones in alphabetical order, which no order of replies changes."""


def unusable(stage: str, role: str, kind: ReplyFault, fault: str) -> Unusable:
    """The count of one reply."""
    text = " ".join(fault.split())
    return Unusable(stage=stage, role=role, kind=kind, count=1, examples=(text[:_LENGTH],) if text else ())


def added_up(counts: Iterable[Unusable]) -> tuple[Unusable, ...]:
    """One count for each stage, role and kind, the most frequent first."""
    groups: dict[tuple[str, str, ReplyFault], list[Unusable]] = {}
    for one in counts:
        groups.setdefault((one.stage, one.role, one.kind), []).append(one)
    summed = [
        Unusable(
            stage=stage,
            role=role,
            kind=kind,
            count=sum(one.count for one in group),
            examples=tuple(sorted({example for one in group for example in one.examples})[:MAX_EXAMPLES]),
        )
        for (stage, role, kind), group in groups.items()
    ]
    return tuple(sorted(summed, key=lambda one: (-one.count, one.stage, one.role, one.kind)))
