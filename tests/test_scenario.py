"""Tests of the records of a scenario: old ones are read, wrong ones are not, and levels follow their rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from envscaler.scenario import Difficulty, UserProfile

LEVELS = ("easy", "medium", "hard")


def test_a_difficulty_of_before_says_what_it_knows() -> None:
    old = Difficulty.model_validate({"calls": 3, "updates": 1, "entities": 1, "rules": 2})
    assert (old.distractors, old.look_ups, old.forbidden) == (None, None, None)
    assert old.level == "easy"


@pytest.mark.parametrize(
    ("calls", "entities", "rules", "distractors", "look_ups", "forbidden", "level"),
    [
        (4, 2, 4, 1, 3, 0, "easy"),
        (5, 2, 4, 1, 3, 0, "easy"),
        (5, 2, 4, 2, 3, 0, "medium"),
        (9, 3, 4, 2, 3, 0, "medium"),
        (9, 3, 4, 2, 3, 1, "hard"),
        (4, 3, 5, 2, 4, 1, "hard"),
    ],
)
def test_levels_follow_their_rule(
    calls: int, entities: int, rules: int, distractors: int, look_ups: int, forbidden: int, level: str
) -> None:
    found = Difficulty(
        calls=calls, entities=entities, rules=rules, distractors=distractors, look_ups=look_ups, forbidden=forbidden
    )
    assert found.level == level


COUNT = st.integers(0, 20)


@given(st.tuples(COUNT, COUNT, COUNT, COUNT, COUNT, COUNT), st.integers(0, 5))
def test_more_of_anything_is_never_easier(counts: tuple[int, ...], which: int) -> None:
    names = ("calls", "entities", "rules", "distractors", "look_ups", "forbidden")
    one = dict(zip(names, counts, strict=True))
    more = {**one, names[which]: one[names[which]] + 1}
    assert LEVELS.index(Difficulty(**more).level) >= LEVELS.index(Difficulty(**one).level)


def test_a_profile_says_for_every_fact_when_it_is_told_or_for_none() -> None:
    profile = UserProfile(opening="Hello.", facts=("It is red.", "It is late."))
    assert (profile.refuses, profile.reveal) == ((), None)
    assert UserProfile(opening="Hello.", facts=("It is red.",), reveal=(2,)).reveal == (2,)
    with pytest.raises(ValidationError, match="reveal has 1 turns for 2 facts"):
        UserProfile(opening="Hello.", facts=("It is red.", "It is late."), reveal=(0,))
