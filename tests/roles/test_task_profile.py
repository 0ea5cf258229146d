"""Tests of how a model's profile of a user becomes a scenario's."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from envscaler.roles.types import TaskProfile


def test_a_fact_brings_the_time_before_which_it_is_not_told() -> None:
    written = TaskProfile.model_validate(
        {"opening": "Hello.", "facts": ["It is red.", {"fact": "It is late.", "after": 2}]}
    )
    assert (written.told.facts, written.told.reveal) == (("It is red.", "It is late."), (0, 2))


@pytest.mark.parametrize("facts", [[], ["It is red."], [{"fact": "It is red.", "after": 0}]])
def test_facts_without_a_time_are_told_when_they_are_asked_for(facts: list[object]) -> None:
    assert TaskProfile.model_validate({"opening": "Hello.", "facts": facts}).told.reveal is None


def test_no_fact_is_told_before_the_conversation() -> None:
    with pytest.raises(ValidationError, match="after"):
        TaskProfile.model_validate({"opening": "Hello.", "facts": [{"fact": "It is red.", "after": -1}]})
