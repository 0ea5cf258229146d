"""`compare`: whether one run is better than another, by a paired test over the scenarios that both played.

Scenarios of one environment are alike, so that interval and test rest on environments, not on scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, fsum
from typing import TYPE_CHECKING, Literal

from envscaler.errors import UsageError
from envscaler.record import Record
from envscaler.rollout.estimates import Mean, flattened, mean_of
from envscaler.rollout.results import Place, Result
from envscaler.trajectory import RewardMode

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EXACT = 14
"""Units up to which every choice of signs is tried; beyond, some are drawn."""
DRAWS = 20_000
_SEED = 20260106
_TIE = 1e-9


class McNemar(Record):
    """Single episodes of each scenario against each other: which run solved what the other did not.

    Exact, by the binomial distribution; it takes scenarios for independent, which those of one environment are not
    quite.
    """

    only_first: int
    only_second: int
    p: float


class Comparison(Record):
    """A second run against a first one."""

    reward: RewardMode
    pairs: int
    """Scenarios that both runs played and were judged in."""
    environments: int
    episodes: tuple[int, int]
    """Of the pairs, in each run."""
    first: Mean
    second: Mean
    difference: Mean
    """What the second run earned more, with the 95% interval."""
    p: float
    """How often a difference at least as large, of either sign, would come up if the runs were equally good: signs of
    the differences are changed at random, those of one environment together."""
    least_p: float
    """No p below it is possible with so few that differ."""
    unit: Literal["environment", "scenario"]
    """Whose signs are changed together; scenarios, where all are of one environment."""
    exact: bool
    """Whether every choice of signs was tried."""
    better: int
    """Pairs in which the second run earned more."""
    worse: int
    mcnemar: McNemar | None = None
    """Where each run has one episode of each pair."""
    left_out: dict[str, int] = {}
    """Scenarios that could not be paired, by reason."""


def compare(first: Sequence[Result], second: Sequence[Result], reward: RewardMode = "fraction") -> Comparison:
    """Compare the results of two runs.

    Raises:
        UsageError: if not a single scenario can be paired.
    """
    ours, theirs = _by_place(first), _by_place(second)
    left_out: dict[str, int] = {}
    pairs: dict[Place, tuple[list[Result], list[Result]]] = {}
    for place in sorted({*ours, *theirs}):
        one, other = ours.get(place, []), theirs.get(place, [])
        if (reason := _unpaired(one, other, reward)) is None:
            pairs[place] = (_judged(one, reward), _judged(other, reward))
        else:
            left_out[reason] = left_out.get(reason, 0) + 1
    if not pairs:
        told = "; ".join(f"{number:,} {reason}" for reason, number in sorted(left_out.items()))
        raise UsageError(
            f"nothing can be compared: no scenario was judged in both runs ({told or 'both are empty'}); "
            "compare runs over the same scenarios"
        )
    means = [_means({place: pair[side] for place, pair in pairs.items()}, reward) for side in (0, 1)]
    differences = {
        env_id: {name: means[1][env_id][name] - value for name, value in inner.items()}
        for env_id, inner in means[0].items()
    }
    episodes = (sum(len(pair[0]) for pair in pairs.values()), sum(len(pair[1]) for pair in pairs.values()))
    unit, sums = _units(differences)
    p, least, exact = sign_flips(sums)
    flat = [value for inner in differences.values() for value in inner.values()]
    single = all(len(one) == len(other) == 1 for one, other in pairs.values())
    return Comparison(
        reward=reward,
        pairs=len(pairs),
        environments=len(differences),
        episodes=episodes,
        first=mean_of(means[0], episodes[0]),
        second=mean_of(means[1], episodes[1]),
        difference=mean_of(differences, sum(episodes)),
        p=p,
        least_p=least,
        unit=unit,
        exact=exact,
        better=sum(value > _TIE for value in flat),
        worse=sum(value < -_TIE for value in flat),
        mcnemar=_mcnemar(list(pairs.values())) if single else None,
        left_out=dict(sorted(left_out.items())),
    )


def sign_flips(differences: Sequence[float]) -> tuple[float, float, bool]:
    """How extreme the sum of some differences is among all choices of their signs.

    Returns:
        The two-sided p, the least one that is possible, and whether every choice was tried.
    """
    moving = sorted(value for value in differences if abs(value) > _TIE)
    if not moving:
        return 1.0, 1.0, True
    import numpy as np  # loaded here, as in `estimates`

    seen, values = abs(fsum(moving)) - _TIE * len(moving), np.array(moving)

    def extreme(signs: npt.NDArray[np.int64]) -> int:
        return int((np.abs(np.einsum("ij,j->i", signs * 2.0 - 1.0, values)) >= seen).sum())

    if len(moving) <= EXACT:
        choices = 1 << len(moving)
        every = (np.arange(choices)[:, None] >> np.arange(len(moving))) & 1
        return extreme(every) / choices, 2 / choices, True
    # Drawn in parts: a matrix of all signs would not fit where there are many units.
    random = np.random.default_rng(_SEED)
    count = sum(extreme(random.integers(0, 2, size=(1000, len(moving)))) for _ in range(DRAWS // 1000))
    return (1 + count) / (1 + DRAWS), 1 / (1 + DRAWS), False


def binomial_p(fewer: int, number: int) -> float:
    """Two-sided exact p of seeing so few of one kind, or fewer, among a number that should be half of it."""
    fewer = min(fewer, number - fewer)
    return float(min(1.0, 2 * sum(comb(number, one) for one in range(fewer + 1)) / 2**number)) if number else 1.0


def _by_place(results: Sequence[Result]) -> dict[Place, list[Result]]:
    places: dict[Place, list[Result]] = {}
    for result in results:
        places.setdefault(result.place, []).append(result)
    return places


def _unpaired(one: Sequence[Result], other: Sequence[Result], reward: RewardMode) -> str | None:
    """Why a scenario cannot be compared; None when it can."""
    if not other:
        return "only in the first run"
    if not one:
        return "only in the second run"
    if {result.scenario_digest for result in one} != {result.scenario_digest for result in other}:
        return "not the same scenario in both runs: it was edited in between"
    for which, results in (("first", one), ("second", other)):
        if not any(result.counts and result.rewards["fraction"] is not None for result in results):
            return f"not judged in the {which} run"
        if not _judged(results, reward):
            return f"without a reward {reward}: no goal was open at reset"
    return None


def _judged(results: Sequence[Result], reward: RewardMode) -> list[Result]:
    return [result for result in results if result.counts and result.rewards[reward] is not None]


def _means(results: Mapping[Place, Sequence[Result]], reward: RewardMode) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, list[float]]] = {}
    for (env_id, scenario_id), own in results.items():
        rewards = [one for result in own if (one := result.rewards[reward]) is not None]
        values.setdefault(env_id, {})[scenario_id] = rewards
    return flattened(values)


def _units(
    differences: Mapping[str, Mapping[str, float]],
) -> tuple[Literal["environment", "scenario"], list[float]]:
    """The sums whose signs are changed, each as one."""
    if len(differences) == 1:
        return "scenario", [value for inner in differences.values() for value in inner.values()]
    return "environment", [fsum(inner.values()) for inner in differences.values()]


def _mcnemar(pairs: Sequence[tuple[Sequence[Result], Sequence[Result]]]) -> McNemar:
    solved = [(bool(one[0].rewards["solved"]), bool(other[0].rewards["solved"])) for one, other in pairs]
    only_first = sum(ours and not theirs for ours, theirs in solved)
    only_second = sum(theirs and not ours for ours, theirs in solved)
    return McNemar(only_first=only_first, only_second=only_second, p=binomial_p(only_first, only_first + only_second))
