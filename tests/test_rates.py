"""Tests of shares: the interval holds the share, and the test errs no more often than it says."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from envscaler.rates import ERROR_LEVEL, settled, wilson

counts = st.integers(0, 300).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


@given(counts)
def test_the_interval_is_that_of_scipy_and_holds_the_share(count: tuple[int, int]) -> None:
    successes, trials = count
    ends = wilson(successes, trials)
    if not trials:
        assert ends is None
        return
    assert ends is not None
    known = binomtest(successes, trials).proportion_ci(0.95, "wilson")
    assert ends == pytest.approx((known.low, known.high), abs=1e-9)
    assert 0 <= ends[0] <= successes / trials <= ends[1] <= 1


def test_what_is_clear_is_settled_and_what_is_not_is_not() -> None:
    assert settled(30, 30, 0.85) == "above"
    assert settled(20, 20, 0.85) is None
    assert settled(10, 20, 0.85) == "below"
    assert settled(86, 100, 0.85) is None
    assert settled(0, 0, 0.85) is None


def test_thresholds_at_the_ends_are_settled_by_certainty() -> None:
    assert settled(0, 5, 0.0) == "above"
    assert settled(100, 100, 1.0) is None
    assert settled(99, 100, 1.0) == "below"


@given(counts, st.floats(0.05, 0.95))
def test_one_more_success_never_speaks_for_less(count: tuple[int, int], threshold: float) -> None:
    successes, trials = count
    order = {"below": 0, None: 1, "above": 2}
    assert order[settled(successes + 1, trials + 1, threshold)] >= order[settled(successes, trials + 1, threshold)]


@pytest.mark.parametrize(("rate", "wrong"), [(0.84, "above"), (0.85, "below")])
def test_looking_after_every_trial_errs_no_more_often_than_said(rate: float, wrong: str) -> None:
    rng = random.Random(7)
    runs, errors = 400, 0
    for _ in range(runs):
        successes = 0
        for trial in range(1, 151):
            successes += rng.random() < rate
            side = settled(successes, trial, 0.85)
            if side is not None:
                errors += side == wrong
                break
    assert errors / runs <= ERROR_LEVEL
