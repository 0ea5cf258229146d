"""Tests that counts of unusable and of mended replies are the same in whatever order and groups they are added up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.errors import ReplyFault
from envscaler.llm.chat import Mending
from envscaler.synth.replies import (
    MAX_EXAMPLES,
    MendedReplies,
    Unusable,
    added_up,
    mended,
    mended_in_all,
    unusable,
)

KINDS: tuple[ReplyFault, ...] = ("empty", "cut off", "rejected")
REPLIES = st.lists(
    st.builds(
        unusable, st.sampled_from(["design", "program"]), st.just("role"), st.sampled_from(KINDS), st.text(max_size=3)
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=60)
@given(REPLIES, REPLIES, st.randoms(use_true_random=False))
def test_order_and_grouping_make_no_difference(one: list[Unusable], other: list[Unusable], rng: object) -> None:
    at_once = added_up([*one, *other])
    rng.shuffle(one)  # type: ignore[attr-defined]
    assert added_up([*added_up(other), *added_up(one)]) == at_once
    assert sum(counted.count for counted in at_once) == len(one) + len(other)
    assert all(len(counted.examples) <= MAX_EXAMPLES for counted in at_once)


MENDINGS: tuple[Mending, ...] = ("no fence", "JSON syntax", "cut tail")
MENDED = st.lists(
    st.builds(
        mended, st.sampled_from(["design", "program"]), st.just("role"), st.sets(st.sampled_from(MENDINGS)).map(sorted)
    ),
    max_size=12,
).map(lambda replies: [one for reply in replies for one in reply])


@settings(deadline=None, max_examples=60)
@given(MENDED, MENDED, st.randoms(use_true_random=False))
def test_so_it_is_with_what_was_made_good(one: list[MendedReplies], other: list[MendedReplies], rng: object) -> None:
    at_once = mended_in_all([*one, *other])
    rng.shuffle(one)  # type: ignore[attr-defined]
    assert mended_in_all([*mended_in_all(other), *mended_in_all(one)]) == at_once
    assert sum(counted.count for counted in at_once) == len(one) + len(other)


def test_an_example_is_one_line_of_bounded_length() -> None:
    (example,) = unusable("design", "plan_tools", "unreadable", "a\n b " * 200).examples
    assert "\n" not in example
    assert len(example) == 200
