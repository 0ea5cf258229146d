"""Replies that could not be used, and those that were mended, counted by role and kind; the counts do not depend on the
order in which they came.

What makes a reply unusable, and what is mended, is decided in `roles.ask`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from envscaler.errors import ReplyFault
from envscaler.llm.chat import Mending
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


class MendedReplies(Record):
    """Replies in one role that were used after one thing in their form was made good; one that needed two counts for
    both."""

    stage: str
    role: str
    mending: Mending
    count: int


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


def mended(stage: str, role: str, mendings: Iterable[Mending]) -> list[MendedReplies]:
    """The counts of one reply."""
    return [MendedReplies(stage=stage, role=role, mending=mending, count=1) for mending in mendings]


def mended_in_all(counts: Iterable[MendedReplies]) -> tuple[MendedReplies, ...]:
    """One count for each stage, role and mending, the most frequent first."""
    sums: Counter[tuple[str, str, Mending]] = Counter()
    for one in counts:
        sums[one.stage, one.role, one.mending] += one.count
    summed = [
        MendedReplies(stage=stage, role=role, mending=mending, count=count)
        for (stage, role, mending), count in sums.items()
    ]
    return tuple(sorted(summed, key=lambda one: (-one.count, one.stage, one.role, one.mending)))
