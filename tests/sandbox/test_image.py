"""An image has the text that the whole state has, whatever an earlier one knew of it, and leads back to the letter."""

from __future__ import annotations

import copy
import datetime
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.canonical import canonical_text, from_json, to_json
from envscaler.errors import NotJson
from envscaler.sandbox.inside.image import Image

PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-300, 300),
        st.sampled_from([219, 251, -5, -37, 2**63, 1e16, 1e20, 1.5, -0.0, 0.0, "é", "ی", "x" * 219, "9" * 30, "YWJj"]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=4),
    ),
    lambda part: st.one_of(st.lists(part, max_size=6), st.dictionaries(st.text(max_size=3), part, max_size=8)),
    max_leaves=20,
)
ODD = st.sampled_from(
    [
        *(float("nan"), float("inf"), 10**20, -(2**63) - 1, b"abc", "\ud800", datetime.date(2024, 1, 2), 1j, ...),
        *((), (1, [2]), {3, 1, 2}, frozenset({"b", "a"}), {1: "a", "1": "b"}, {1.5: 1}, {None: 1, True: 2}, {1e16: 1}),
        *([[[[[[[[[[[[[[[[[["deep"]]]]]]]]]]]]]]]]]], defaultdict(int, a=1), bytearray(b"abc"), object()),
    ]
)
VALUES = st.one_of(PLAIN, PLAIN, PLAIN, ODD).map(copy.deepcopy)
NAMES = st.sampled_from(["rows", "log", "last", "näme", 'a"b', "\udc00", "z"])


def containers(attributes: dict[Any, Any]) -> list[Any]:
    """All lists and dictionaries, each once, the attributes first."""
    found: list[Any] = []
    waiting: list[Any] = [attributes]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, (dict, list)) and not any(value is known for known in found):
            found.append(value)
        if isinstance(value, (dict, list, tuple)) and len(found) < 60:
            waiting += [
                part
                for part in (value.values() if isinstance(value, dict) else value)
                if isinstance(part, (dict, list, tuple)) and not any(part is known for known in found)
            ]
    return found


def shape(value: Any, seen: dict[int, int]) -> Any:
    """A value with types, order, and what is the same object as what."""
    if isinstance(value, (dict, list, set)):
        if id(value) in seen:
            return seen[id(value)]
        seen[id(value)] = len(seen)
    if isinstance(value, dict):
        return type(value), [(repr(key), shape(part, seen)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [shape(part, seen) for part in value]
    return type(value), sorted(map(repr, value)) if isinstance(value, (set, frozenset)) else repr(value)


def put(attributes: dict[Any, Any], draw: Callable[[Any], Any]) -> None:
    container = draw(st.sampled_from(containers(attributes)))
    if container is attributes:
        container[draw(NAMES)] = draw(VALUES)
    elif isinstance(container, dict):
        keys = st.sampled_from(list(container)) if container else st.text(max_size=3)
        container[draw(keys | st.text(max_size=3) | st.sampled_from([1, True, None, 1e16]))] = draw(VALUES)
    elif container and draw(st.booleans()):
        container[draw(st.integers(0, len(container) - 1))] = draw(VALUES)
    else:
        container.insert(draw(st.integers(0, len(container))), draw(VALUES))


def share(attributes: dict[Any, Any], draw: Callable[[Any], Any]) -> None:
    target, source = draw(st.sampled_from(containers(attributes))), draw(st.sampled_from(containers(attributes)))
    shared = draw(st.sampled_from([source, (source,)]))
    if isinstance(target, dict):
        target[draw(NAMES)] = shared
    else:
        target.append(shared)


def part_ways(attributes: dict[Any, Any], draw: Callable[[Any], Any]) -> None:
    """The same values, shared by nobody any more."""
    for name in list(attributes):
        attributes[name] = copy.deepcopy(attributes[name])


def remove(attributes: dict[Any, Any], draw: Callable[[Any], Any]) -> None:
    container = draw(st.sampled_from(containers(attributes)))
    if container:
        del container[draw(st.sampled_from(list(container) if isinstance(container, dict) else range(len(container))))]


def reorder(attributes: dict[Any, Any], draw: Callable[[Any], Any]) -> None:
    container = draw(st.sampled_from(containers(attributes)))
    if isinstance(container, dict) and container:
        key = draw(st.sampled_from(list(container)))
        container[key] = container.pop(key)
    elif container:
        container.reverse()


def retype(attributes: dict[Any, Any], draw: Callable[[Any], Any]) -> None:
    """What is equal, or has the same text, and is something else."""
    twins: dict[Any, list[Any]] = {1: [True, 1.0, 1], 0: [False, 0.0, -0.0, 0], 1e20: [10**20], None: [float("nan")]}
    for container in containers(attributes):
        places = list(container.items() if isinstance(container, dict) else enumerate(container))
        for place, value in places:
            if isinstance(value, list) and draw(st.booleans()):
                container[place] = draw(st.sampled_from([tuple(value), list(value)]))
            elif value == "YWJj":
                container[place] = draw(st.sampled_from([b"abc", "YWJj"]))
            elif isinstance(value, (int, float, type(None))) and value in twins:
                container[place] = draw(st.sampled_from(twins[value]))


def told(attributes: dict[Any, Any]) -> bytes | str:
    try:
        return canonical_text(attributes)
    except NotJson as error:
        return str(error)


def said(image: Image, attributes: dict[Any, Any], text: bytes | str) -> tuple[Image, bytes | str]:
    """The next image with what it says: `text`, if that is what the image said, or why there is none."""
    try:
        following, text_now = image.next(attributes)
    except NotJson as error:
        return image, str(error)
    return following, text if text_now is None else text_now


MOVES = st.lists(
    st.tuples(st.sampled_from([put, put, put, share, part_ways, remove, reorder, retype]), st.booleans()), max_size=12
)


@given(st.dictionaries(NAMES, VALUES, max_size=5), MOVES, st.data())
@settings(max_examples=300, deadline=None)
def test_whatever_happens_to_a_state_its_image_is_as_if_it_were_the_first(
    start: dict[Any, Any], moves: list[tuple[Callable[[dict[Any, Any], Any], None], bool]], data: st.DataObject
) -> None:
    attributes = copy.deepcopy(start)
    image, text, kept = Image(), told({}), None
    for move, fails in [(lambda *_: None, False), *moves]:
        move(attributes, data.draw)
        now = told(attributes)
        if not fails:
            image, text_now = said(image, attributes, text)
            assert text_now == now
            if isinstance(text_now, bytes):
                text, kept = text_now, shape(attributes, {})
                continue
        if kept is None or not image.restorable:
            return
        if not image.shows(attributes):
            image.restore(attributes)
        assert shape(attributes, {}) == kept


def states() -> Iterator[dict[str, Any]]:
    row = {"id": "r", "tags": ["x"]}
    yield {"rows": {"r": row}, "last": row}
    yield {"rows": {"r": row}, "tags": row["tags"]}
    yield {"rows": [row], "pair": (row, 1)}
    yield {"pair": (row,), "other": {"row": row}}
    pair = (row,)
    yield {"one": pair, "two": pair}
    yield {"one": row, "two": row}
    yield {"rows": {"r": {"é": -5, "more": [219, 251.0, row]}}, "last": row}


@pytest.mark.parametrize("state", list(states()))
def test_an_object_that_two_attributes_share_is_one_object_again(state: dict[str, Any]) -> None:
    image, _ = Image().next(state)
    kept = shape(state, {})
    again = copy.deepcopy(state)
    for name in again:
        state[name] = again[name] if name == "rows" else None
    assert not image.shows(state)
    image.restore(state)
    assert shape(state, {}) == kept


def test_equal_attributes_that_become_one_object_are_not_what_they_were() -> None:
    state = {"rows": {"r": 1}, "log": {"r": 1}}
    image, _ = Image().next(state)
    state["log"] = state["rows"]
    assert not image.shows(state)
    following, text = image.next(state)
    assert text is None
    assert following.shows(state)
    image.restore(state)
    assert state["log"] is not state["rows"]
    assert not following.shows(state)
    following.restore(state)
    assert state["log"] is state["rows"]


@pytest.mark.parametrize(
    ("key", "was", "becomes"),
    [
        ("k", 1e20, 10**20),
        ("k", {"n": [1e20]}, {"n": [10**20]}),
        ("k", 1, True),
        ("k", [1, 0.0], [1.0, -0.0]),
        ("k", None, float("nan")),
        ("k", "YWJj", b"abc"),
        ("k", [8, 1], {8, 1}),
        ("k", [1], (1,)),
        ("k", {"1": 2}, {1: 2}),
        (1, ..., 5),
        (1e16, ..., 5),
        ("k", 5, json.loads("[" * 199 + "]" * 199)),
        ("k", 5, "\ud800"),
    ],
)
def test_what_becomes_something_that_looks_alike_is_told_from_it(key: Any, was: Any, becomes: Any) -> None:
    rows: dict[Any, Any] = {str(n): n for n in range(9)}
    state = {"rows": rows}
    image = Image()
    for rows["count"] in range(3):
        image, _ = image.next(state)
    if was is not ...:
        rows[key] = was
    before = told(state)
    image, _ = image.next(state)
    rows[key] = becomes
    assert said(image, state, before)[1] == told(state)


def test_the_image_of_what_has_not_changed_is_the_same_image() -> None:
    state: dict[str, Any] = {"rows": {f"r{n}": {"n": n, "price": n / 7} for n in range(200)}, "log": [], "count": 0}
    image, _ = Image().next(state)
    for count in range(1, 5):
        state["count"] = count
        image, text = image.next(state)
        assert text == canonical_text(state)
        assert image.next(state) == (image, None)


@given(st.dictionaries(NAMES, PLAIN, max_size=5))
def test_what_was_just_read_need_not_be_read_back(state: dict[str, Any]) -> None:
    text = to_json(state)
    decoded = from_json(text)
    others: list[dict[str, Any]] = [decoded, from_json(text), {}]
    for known in others:
        assert Image().next(decoded, known)[1] == canonical_text(decoded)


@pytest.mark.parametrize("value", [10**20, [[10**20]], json.loads("[" * 200 + "]" * 200)])
def test_what_was_just_read_may_still_be_too_much(value: Any) -> None:
    decoded = {"a": value, "b": [1]}
    with pytest.raises(NotJson) as told_of_whole:
        canonical_text(decoded)
    with pytest.raises(NotJson, match=re.escape(str(told_of_whole.value))):
        Image().next(decoded, decoded)
