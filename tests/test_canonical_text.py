"""The quick way to a value's text gives what the slow one gives, or is refused where that is."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import uuid
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.canonical import canonical, canonical_text, encode, json_text_of, to_json
from envscaler.errors import NotJson


class Colour(enum.StrEnum):
    RED = "red"


class Grade(enum.IntEnum):
    ONE = 1


class Plain(enum.Enum):
    A = "a"


class Shouting(str):
    def __str__(self) -> str:
        return self.upper()


@dataclass
class Point:
    x: int = 1


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**66), 2**66),
    st.floats(),
    st.text(st.characters(exclude_categories=())),
    st.binary(max_size=4),
    st.sampled_from(
        [Colour.RED, Grade.ONE, Plain.A, Shouting("a"), Point(), decimal.Decimal("1.5"), uuid.UUID(int=7), 1.0, -0.0]
    ),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
)
KEYS = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.floats(), st.sampled_from([Colour.RED, "red"]))
VALUES = st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.lists(part),
        st.tuples(part, part),
        st.dictionaries(KEYS, part),
        st.dictionaries(KEYS, part).map(lambda made: OrderedDict(made)),
        st.lists(part).map(lambda parts: defaultdict(list, {"parts": parts})),
        st.frozensets(st.text(max_size=3)),
        st.lists(st.text(max_size=2)).map(Counter),
    ),
    max_leaves=20,
)


def outcome(write: Callable[[Any], bytes], value: object) -> bytes | str:
    try:
        return write(value)
    except NotJson as error:
        return str(error)


@given(VALUES)
def test_the_quick_text_is_the_slow_one(value: object) -> None:
    assert outcome(canonical_text, value) == outcome(lambda part: encode(canonical(part)), value)
    assert outcome(json_text_of, value) == outcome(lambda part: to_json(canonical(part)), value)


def nested(depth: int, leaf: object = 0) -> object:
    value = leaf
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


@pytest.mark.parametrize(
    "value",
    [
        *(nested(depth) for depth in (15, 40, 199, 201, 600)),
        [2**64 - 1, -(2**63)],
        [2**64],
        [-(2**63) - 1],
        {"n": 10**40},
        {"n": math.inf},
        {"digits": "1" * 30, "brackets": "[[{{" * 90},
        {"t": datetime.datetime(2025, 1, 6), "m": memoryview(b"x")},
        {"same": [[1, 2]] * 3},
        "\ud83d",
        {"\udc00": 1},
        {1: "a", "1": "b"},
    ],
)
def test_where_json_ends_both_end(value: object) -> None:
    assert outcome(canonical_text, value) == outcome(lambda part: encode(canonical(part)), value)
    assert outcome(json_text_of, value) == outcome(lambda part: to_json(canonical(part)), value)
