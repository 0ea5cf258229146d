"""When two JSON values mean the same to a tool, and when a value fits what a filter asks for.

Which values are compared is the business of the modules beside this one.
"""

from __future__ import annotations

import math
import re
from typing import Literal

from envscaler.state import JsonValue

Fit = Literal["exactly", "perhaps", "no"]
"""`perhaps`: under one of the readings that a filter of that name can have (a part of a text, at least a number …)."""

_MOMENT = re.compile(r"\d{4}-\d\d(-\d\d)?([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?|\d\d:\d\d(:\d\d)?")


def alike(left: JsonValue, right: JsonValue) -> bool:
    """Equality in which 2 is 2.0 and true no number; spaces around a text and the case of its letters are nothing."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=0.005)
    if isinstance(left, str) and isinstance(right, str):
        return left.strip().casefold() == right.strip().casefold()
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(alike(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(alike(one, other) for one, other in zip(left, right, strict=True))
    return bool(left == right)


def is_moment(value: JsonValue) -> bool:
    """Whether a value is a date or a time."""
    return isinstance(value, str) and _MOMENT.match(value.strip()) is not None


def ordered(value: JsonValue) -> bool:
    """Whether a filter by such a value may mean a bound: numbers, dates and times."""
    if isinstance(value, str):
        return _MOMENT.fullmatch(value.strip()) is not None
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def less(left: JsonValue, right: JsonValue) -> bool | None:
    """Whether one value lies below another; None where they have no order."""
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left < right
    if isinstance(left, str) and isinstance(right, str):
        return left < right
    return None


def fit(held: JsonValue, wanted: JsonValue) -> Fit:
    """How a value that a record holds fits what a filter asks for."""
    if alike(held, wanted):
        return "exactly"
    if isinstance(held, list):
        return "exactly" if any(alike(part, wanted) for part in held) else "no"
    if isinstance(wanted, list):
        return "exactly" if any(alike(held, part) for part in wanted) else "no"
    if ordered(wanted):
        return "no" if less(held, wanted) is None and not _within(held, wanted) else "perhaps"
    return "perhaps" if _within(held, wanted) else "no"


def changed_by(before: JsonValue, after: JsonValue, given: JsonValue) -> bool:
    """Whether a value came about from an argument: it is the argument, or the old value with it added or taken off."""
    if alike(after, given):
        return True
    if isinstance(after, list):
        old = before if isinstance(before, list) else []
        parts = given if isinstance(given, list) else [given]
        added = all(any(alike(part, one) for one in after) for part in parts) and len(after) >= len(old)
        taken = not any(any(alike(part, one) for one in after) for part in parts) and len(after) <= len(old)
        return added or taken
    numbers = [part for part in (before, after, given) if isinstance(part, (int, float)) and not isinstance(part, bool)]
    if len(numbers) == 3:
        start, end, by = numbers
        return alike(end, start + by) or alike(end, start - by)
    if isinstance(after, str) and isinstance(given, str):
        return given.strip().casefold() in after.casefold()
    return False


def _within(held: JsonValue, wanted: JsonValue) -> bool:
    if not isinstance(held, str) or not isinstance(wanted, str):
        return False
    text, part = held.casefold(), wanted.strip().casefold()
    return part in text or any(word in text.split() for word in part.split())
