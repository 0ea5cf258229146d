"""Intervals and pass@k: known values, laws, and coverage in simulation."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.rollout.estimates import (
    interval,
    mean_of,
    mean_of_parts,
    pass_all,
    pass_at,
    powers_of_two,
    t_quantile,
    t_within,
)


@given(st.integers(1, 7), st.data())
def test_pass_at_k_and_pass_all_k_are_shares_of_all_choices_of_k(samples: int, data: st.DataObject) -> None:
    solved = data.draw(st.integers(0, samples))
    k = data.draw(st.integers(1, samples))
    choices = list(combinations([True] * solved + [False] * (samples - solved), k))
    assert pass_at(samples, solved, k) == pytest.approx(sum(any(one) for one in choices) / len(choices))
    assert pass_all(samples, solved, k) == pytest.approx(sum(all(one) for one in choices) / len(choices))


def test_k_goes_in_powers_of_two_up_to_the_samples() -> None:
    assert [powers_of_two(most) for most in (0, 1, 2, 3, 4, 9)] == [(), (1,), (1, 2), (1, 2), (1, 2, 4), (1, 2, 4, 8)]


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (10, 2.22814), (120, 1.97993)]
)
def test_student_t_has_the_values_of_the_tables(freedom: int, value: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(value, abs=1e-4)
    assert t_within(value, freedom) == pytest.approx(0.95, abs=1e-5)


VALUES = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.dictionaries(st.sampled_from("uvwxyz"), st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), max_size=5),
    max_size=6,
)


@settings(deadline=None)
@given(VALUES, st.randoms())
def test_a_mean_lies_in_its_interval_whatever_the_order(values: dict[str, dict[str, float]], random: object) -> None:
    mean = mean_of(values, 0)
    if mean.low is not None:
        assert mean.value is not None
        assert mean.high is not None
        assert 0.0 <= mean.low <= mean.value <= mean.high <= 1.0 + 1e-12
    pairs = [(env_id, list(inner.items())) for env_id, inner in values.items()]
    random.shuffle(pairs)  # type: ignore[attr-defined]
    for _, inner in pairs:
        random.shuffle(inner)  # type: ignore[attr-defined]
    assert mean_of({env_id: dict(inner) for env_id, inner in pairs}, 0) == mean


def test_nothing_and_a_single_scenario_have_no_interval() -> None:
    assert mean_of({}, 0).value is None
    alone = mean_of({"a": {"s": 0.5}}, 1)
    assert (alone.value, alone.scenarios, alone.low, alone.high) == (0.5, 1, None, None)


def test_scenarios_are_drawn_where_there_is_one_environment_only() -> None:
    one = interval({"a": {str(number): float(number % 2) for number in range(40)}})
    forty = interval({str(number): {"s": float(number % 2)} for number in range(40)})
    assert one is not None
    assert forty is not None
    assert one == pytest.approx(forty, abs=0.05)


def test_equal_scenarios_of_one_environment_do_not_narrow_the_interval() -> None:
    few = interval({str(number): {"s": float(number % 2)} for number in range(12)})
    many = interval({str(number): {str(s): float(number % 2) for s in range(30)} for number in range(12)})
    assert few is not None
    assert many is not None
    assert many == pytest.approx(few)


def covered(environments: int, repetitions: int) -> float:
    """How often the interval holds the truth, where environments differ in how hard they are."""
    random = np.random.default_rng(7)
    hits = 0
    for _ in range(repetitions):
        hard = random.uniform(0.2, 0.8, environments)
        values = {
            str(env): {str(s): float(random.random() < share) for s in range(int(random.integers(2, 9)))}
            for env, share in enumerate(hard)
        }
        ends = interval(values)
        assert ends is not None
        hits += ends[0] <= 0.5 <= ends[1]
    return hits / repetitions


@pytest.mark.parametrize("environments", [8, 30])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(environments: int) -> None:
    # 400 repetitions have a standard error of 1.1 points.
    assert 0.915 <= covered(environments, 400) <= 0.985


PARTS = st.dictionaries(
    st.sampled_from("abc"),
    st.dictionaries(
        st.sampled_from("12345"),
        st.dictionaries(st.sampled_from("xy"), st.sampled_from([0.0, 0.5, 1.0]), min_size=1),
        min_size=1,
    ),
    min_size=1,
)


@given(PARTS)
def test_parts_count_the_same_however_large_they_are(parts: dict[str, dict[str, dict[str, float]]]) -> None:
    mean = mean_of_parts(parts, 1)
    means = [fmean([one for inner in groups.values() for one in inner.values()]) for groups in parts.values()]
    assert mean.value == pytest.approx(fmean(means))
    if len({name for groups in parts.values() for name in groups}) < 2:
        assert (mean.low, mean.high) == (None, None)
    else:
        assert mean.low is not None
        assert mean.high is not None
        assert 0 <= mean.low <= mean.value <= mean.high <= 1


@given(PARTS)
def test_a_single_part_is_estimated_as_environments_are(parts: dict[str, dict[str, dict[str, float]]]) -> None:
    groups = next(iter(parts.values()))
    if len(groups) > 1:
        alone, plain = mean_of_parts({"a": groups}, 3), mean_of(groups, 3)
        assert (alone.low, alone.high) == (pytest.approx(plain.low), pytest.approx(plain.high))
        assert alone.scenarios == plain.scenarios


def test_nothing_is_no_mean_of_parts() -> None:
    assert mean_of_parts({}, 0).value is None
    assert mean_of_parts({"a": {"1": {}}}, 0).value is None
