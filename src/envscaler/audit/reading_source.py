"""`text_of`: what the text of a check names and compares, in the form in which remedies are looked for.

It orders and supplies what is tried; nothing is concluded from the text alone. Reading code and sentence is the
business of `demands` and `mentions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from envscaler.audit.demands import ANY, Demand, read_check
from envscaler.audit.mentions import mentions
from envscaler.scenario import Check
from envscaler.state import JsonValue


@dataclass(frozen=True)
class CheckText:
    """What a check's text says."""

    names: frozenset[str]
    """Every text in the code: keys, ids, fields and values alike."""
    literals: tuple[JsonValue, ...]
    """Values in the code and in the sentence, in their order."""
    wanted: tuple[tuple[str, JsonValue], ...]
    """A field with a value that a comparison in the code asks of it."""


@lru_cache(maxsize=512)
def text_of(check: Check) -> CheckText:
    """The text of a check; a code that does not parse names nothing."""
    reading, mentioned = read_check(check.source), mentions(check.description)
    numbers = (int(number) if number.is_integer() else number for number in mentioned.numbers)
    literals = {repr(value): value for value in (*reading.constants, *mentioned.texts, *numbers)}
    return CheckText(
        frozenset(str(value) for value in reading.constants if isinstance(value, (str, int))),
        tuple(literals.values()),
        tuple(dict.fromkeys(asked for demand in reading.demands for asked in _wanted(demand))),
    )


def _wanted(demand: Demand) -> Iterator[tuple[str, JsonValue]]:
    field = next((token for token in reversed(demand.path) if token != ANY), None)
    if field is None:
        return
    value = demand.value
    match demand.relation:
        case "is" | "among" | "contains":
            yield field, value
        case "is_not":
            # `if row["x"] != 3: return False` asks for 3; where it does not, the value is tried in vain.
            yield field, not value if isinstance(value, bool) else value
        case "above" | "below" if isinstance(value, (int, float)):
            yield field, value + (1 if demand.relation == "above" else -1)
        case "yes":
            yield from ((field, True), (field, False))
