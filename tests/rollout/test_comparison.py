"""Two runs against each other: pairs, known p values, and that p is uniform where nothing differs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout.episodes import episode, outcomes

from envscaler.errors import UsageError
from envscaler.rollout.comparison import DRAWS, binomial_p, compare, sign_flips
from envscaler.rollout.results import result_of
from envscaler.trajectory import StopReason


def test_pairs_are_scenarios_and_samples_are_averaged() -> None:
    first = outcomes({"a": {"1": "+---", "2": "--"}, "b": {"1": "-"}})
    second = outcomes({"a": {"1": "++", "2": "+-"}, "b": {"1": "-"}})
    told = compare(first, second, "solved")
    assert (told.pairs, told.environments, told.episodes) == (3, 2, (7, 5))
    assert told.first.value == pytest.approx(0.25 / 3)
    assert told.second.value == pytest.approx(1.5 / 3)
    assert told.difference.value == pytest.approx((0.75 + 0.5 + 0) / 3)
    assert (told.better, told.worse, told.mcnemar) == (2, 0, None)


def test_a_run_against_itself_shows_no_difference() -> None:
    run = outcomes({env: {"1": "+", "2": "-"} for env in "abcdef"})
    told = compare(run, run)
    assert (told.difference.value, told.difference.low, told.difference.high, told.p) == (0.0, 0.0, 0.0, 1.0)
    assert told.mcnemar is not None
    assert told.mcnemar.p == 1.0


def test_every_environment_better_has_the_least_p_there_can_be() -> None:
    worse = outcomes({env: {"1": "-", "2": "-"} for env in "abcdef"})
    better = outcomes({env: {"1": "+", "2": "+"} for env in "abcdef"})
    told = compare(worse, better)
    assert (told.difference.value, told.p, told.least_p, told.exact) == (1.0, 2 / 64, 2 / 64, True)
    assert compare(better, worse).difference.value == -1.0
    assert compare(better, worse).p == told.p


def test_many_scenarios_of_one_environment_count_as_one_unit() -> None:
    worse = outcomes({"a": {str(s): "-" for s in range(50)}, "b": {"1": "+"}})
    better = outcomes({"a": {str(s): "+" for s in range(50)}, "b": {"1": "+"}})
    told = compare(worse, better)
    assert (told.unit, told.p) == ("environment", 1.0)


def test_scenarios_are_the_units_where_there_is_one_environment_only() -> None:
    worse = outcomes({"a": {str(s): "-" for s in range(10)}})
    better = outcomes({"a": {str(s): "+" for s in range(10)}})
    told = compare(worse, better)
    assert (told.unit, told.p) == ("scenario", 2 / 2**10)


def test_mcnemar_has_the_value_worked_out_by_hand() -> None:
    # 1 against 7: 2 · (1 + 8) / 2^8.
    first = outcomes({str(n): {"1": "+" if n == 0 else "-"} for n in range(8)})
    second = outcomes({str(n): {"1": "-" if n == 0 else "+"} for n in range(8)})
    told = compare(first, second).mcnemar
    assert told is not None
    assert (told.only_first, told.only_second, told.p) == (1, 7, 18 / 256)
    assert binomial_p(0, 0) == 1.0
    assert binomial_p(3, 6) == 1.0


def test_what_cannot_be_paired_is_counted_by_reason() -> None:
    first = [
        *outcomes({"a": {"1": "+", "2": "!", "3": "+", "4": "+"}}),
        result_of(episode("a", "edited", True, digest="old")),
        result_of(episode("a", "idle", True, held=True)),
    ]
    second = [
        *outcomes({"a": {"1": "+", "2": "+", "3": "!", "5": "+"}}),
        result_of(episode("a", "edited", True, digest="new")),
        result_of(episode("a", "idle", True, held=True)),
    ]
    told = compare(first, second, "gained")
    assert told.pairs == 1
    assert told.left_out == {
        "not judged in the first run": 1,
        "not judged in the second run": 1,
        "not the same scenario in both runs: it was edited in between": 1,
        "only in the first run": 1,
        "only in the second run": 1,
        "without a reward gained: no goal was open at reset": 1,
    }


def test_masked_episodes_are_in_no_pair() -> None:
    masked = [result_of(episode("a", "1", True, masked="its user gave the task away"))]
    with pytest.raises(UsageError, match="1 not judged in the first run"):
        compare(masked, outcomes({"a": {"1": "+"}}))


def test_nothing_to_pair_is_said_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"no scenario was judged in both runs \(1 only in the first run; 1 only in"):
        compare(outcomes({"a": {"1": "+"}}), outcomes({"b": {"1": "+"}}))
    with pytest.raises(UsageError, match="both are empty"):
        compare([], [])


@given(st.lists(st.integers(-3, 3), max_size=9))
def test_the_exact_test_counts_choices_of_signs(differences: list[int]) -> None:
    moving = [value for value in differences if value]
    sums = [
        abs(sum(s * v for s, v in zip(signs, moving, strict=True))) for signs in product((1, -1), repeat=len(moving))
    ]
    expected = sum(one >= abs(sum(moving)) for one in sums) / len(sums)
    assert sign_flips([float(value) for value in differences])[0] == pytest.approx(expected)


def test_drawn_signs_come_close_to_all_signs() -> None:
    values = [0.3, -0.1, 0.25, 0.4, -0.2, 0.05, 0.1, 0.33, -0.28, 0.15, 0.2, 0.21, -0.02]
    exact, _, whole = sign_flips(values)
    # Two more that hardly matter bring it beyond what is tried exhaustively.
    drawn, least, all_tried = sign_flips([*values, 1e-6, -1e-6])
    assert whole
    assert not all_tried
    assert least == 1 / (DRAWS + 1)
    assert drawn == pytest.approx(exact, abs=0.015)


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.dictionaries(st.sampled_from("1234"), st.text("+-!", max_size=3))),
    st.dictionaries(st.sampled_from("abcdefgh"), st.dictionaries(st.sampled_from("1234"), st.text("+-!", max_size=3))),
    st.randoms(),
)
def test_a_comparison_depends_on_no_order(
    one: dict[str, dict[str, str]], other: dict[str, dict[str, str]], random: object
) -> None:
    first, second = outcomes(one), outcomes(other)
    try:
        told = compare(first, second)
    except UsageError:
        return
    random.shuffle(first)  # type: ignore[attr-defined]
    random.shuffle(second)  # type: ignore[attr-defined]
    assert compare(first, second) == told
    back = compare(second, first)
    assert back.difference.value == pytest.approx(-(told.difference.value or 0.0))
    assert back.p == pytest.approx(told.p, abs=1e-12)


def test_p_is_uniform_where_only_chance_makes_differences() -> None:
    random = np.random.default_rng(5)
    ps = np.array([sign_flips(list(random.normal(0, random.uniform(0.1, 1, 10))))[0] for _ in range(800)])
    for level in (0.05, 0.2, 0.5, 0.8):
        error = 3 * (level * (1 - level) / len(ps)) ** 0.5
        assert float(np.mean(ps <= level)) == pytest.approx(level, abs=error + 2 / 2**10)


def test_equally_good_runs_seldom_seem_different() -> None:
    random = np.random.default_rng(6)
    ps = []
    for _ in range(100):
        # Environments differ in how hard they are, and the scenarios of one go up and down together.
        runs = [
            outcomes(
                {
                    str(env): {str(s): "+" if random.random() < share else "-" for s in range(6)}
                    for env, share in enumerate(random.choice([0.1, 0.9], 10))
                }
            )
            for _ in range(2)
        ]
        ps.append(compare(*runs, "solved").p)
    # As if scenarios were independent, a quarter of them would; three standard errors of 100 repetitions are allowed.
    assert float(np.mean(np.array(ps) <= 0.05)) <= 0.05 + 3 * 0.022


def test_a_real_difference_is_found() -> None:
    random = np.random.default_rng(3)
    runs = [
        outcomes(
            {
                str(env): {str(s): "".join("+" if random.random() < share else "-" for _ in range(4)) for s in range(5)}
                for env in range(20)
            }
        )
        for share in (0.4, 0.6)
    ]
    told = compare(*runs, "solved")
    assert told.p < 0.001
    assert told.difference.low is not None
    assert told.difference.low > 0
    assert not told.exact


def test_budget_ends_are_as_absent_as_infrastructure() -> None:
    cut = [result_of(episode("a", "1", stop=StopReason.BUDGET))]
    with pytest.raises(UsageError, match="not judged in the second run"):
        compare(outcomes({"a": {"1": "+"}}), cut)
