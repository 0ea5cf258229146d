"""A text that somebody else may have written gives canonical data or `NotJson`, and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.canonical import canonical, from_json, from_untrusted_json, to_json
from envscaler.errors import NotJson

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
VALUES = st.recursive(LEAVES, lambda part: st.lists(part) | st.dictionaries(st.text(), part), max_leaves=40)


@given(VALUES)
def test_canonical_data_come_back(value: object) -> None:
    text = to_json(canonical(value))
    assert from_untrusted_json(text) == from_json(text) == value


@given(st.binary())
def test_any_bytes_are_canonical_data_or_no_json(text: bytes) -> None:
    try:
        value = from_untrusted_json(text)
    except NotJson:
        return
    assert canonical(value) == value


@given(st.integers())
def test_integers_beyond_64_bits_are_refused(number: int) -> None:
    text = json.dumps({"n": [number * 2**64]}).encode()
    if number == 0:
        assert from_untrusted_json(text) == {"n": [0]}
    else:
        with pytest.raises(NotJson):
            from_untrusted_json(text)


@pytest.mark.parametrize("opening", ["[", '{"k":', '[0,{"k":'])
@pytest.mark.parametrize("depth", [198, 201, 900, 50_000])
def test_what_is_nested_too_deeply_is_refused(opening: str, depth: int) -> None:
    ends = {"[": "]", "{": "}"}
    closing = "".join(ends[letter] for letter in reversed(opening) if letter in ends)
    text = (opening * depth + "0" + closing * depth).encode()
    if depth * len(closing) < 200:
        assert canonical(from_untrusted_json(text)) == json.loads(text)
    else:
        with pytest.raises(NotJson):
            from_untrusted_json(text)


def test_long_digits_and_many_brackets_in_texts_are_no_harm() -> None:
    value = {"digits": "9" * 400, "brackets": "[{" * 500, "float": 0.1234567890123456789, "big": 2**64 - 1}
    assert from_untrusted_json(json.dumps(value).encode()) == value
