"""Estimates with intervals from values of scenarios that lie in environments, and pass@k and pass^k of a scenario.

Scenarios of one environment are alike, so that intervals come of drawing environments anew, not scenarios. What is
estimated is `scores`' business.

Source: pass@k: Chen et al. 2021 (arXiv 2107.03374), the unbiased estimator; pass^k: tau-bench (arXiv 2406.12045);
widened percentiles: Hesterberg 2015, "What Teachers Should Know About the Bootstrap", section 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import atan, comb, cos, fsum, pi, sin, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from envscaler.record import Record

if TYPE_CHECKING:
    import numpy.typing as npt

CONFIDENCE = 0.95
DRAWS = 2000
"""Resamples of one interval."""
_SEED = 20260105

ByScenario = Mapping[str, Mapping[str, float]]
"""Environment → scenario → value."""


class Mean(Record):
    """A mean over scenarios, with its 95% interval. Each scenario counts the same, however often it was played."""

    value: float | None
    """None without values."""
    count: int
    """Episodes that it rests on."""
    scenarios: int = 0
    """Scenarios that it is the mean of."""
    low: float | None = None
    """Lower end of the 95% interval; None where nothing can be said, as of a single scenario."""
    high: float | None = None


def mean_of(values: ByScenario, count: int) -> Mean:
    """The mean over scenarios of one value each.

    Args:
        count: episodes behind the values.
    """
    scenarios = sum(len(inner) for inner in values.values())
    if not scenarios:
        return Mean(value=None, count=count)
    # fsum is exact, so that nothing depends on the order in which episodes ended.
    value = fsum(one for inner in values.values() for one in inner.values()) / scenarios
    ends = interval(values)
    low, high = (None, None) if ends is None else (min(ends[0], value), max(ends[1], value))
    return Mean(value=value, count=count, scenarios=scenarios, low=low, high=high)


def interval(values: ByScenario) -> tuple[float, float] | None:
    """The 95% interval of the mean over scenarios: environments are drawn anew, with all their scenarios.

    Of a single environment its scenarios are drawn: the interval then speaks of that environment only. None of a single
    scenario. Percentiles are widened as Student's t is wider than the normal distribution, since few environments
    vary more than their resamples show.
    """
    import numpy as np  # loaded here: whoever only reads records should not wait for it

    clusters = [sorted(inner.values()) for _, inner in sorted(values.items()) if inner]
    if len(clusters) == 1:
        clusters = [[value] for value in clusters[0]]
    if len(clusters) < 2:
        return None
    # einsum, not a matrix product: this is small, and threads of a linear algebra library would wait for each other.
    drawn, each = _drawn(len(clusters)), np.array([[fsum(one), len(one)] for one in clusters])
    sums, sizes = np.einsum("ij,j->i", drawn, each[:, 0]), np.einsum("ij,j->i", drawn, each[:, 1])
    tail = _widened((1 - CONFIDENCE) / 2, len(clusters))
    low, high = np.quantile(sums / sizes, [tail, 1 - tail])
    return float(low), float(high)


@lru_cache(maxsize=8)
def _drawn(clusters: int) -> npt.NDArray[Any]:
    """How often each cluster is in each resample; the same for everything over as many clusters."""
    import numpy as np

    drawn = np.random.default_rng(_SEED).integers(0, clusters, size=(DRAWS, clusters))
    places = drawn + np.arange(DRAWS)[:, None] * clusters
    return np.bincount(places.ravel(), minlength=DRAWS * clusters).reshape(DRAWS, clusters).astype(float)


def pass_at(samples: int, solved: int, k: int) -> float:
    """The chance that at least one of k of the samples, drawn without putting back, is solved."""
    return 1.0 - comb(samples - solved, k) / comb(samples, k)


def pass_all(samples: int, solved: int, k: int) -> float:
    """The chance that k of the samples, drawn without putting back, are all solved."""
    return comb(solved, k) / comb(samples, k)


def powers_of_two(most: int) -> tuple[int, ...]:
    """1, 2, 4, … up to `most`."""
    return tuple(1 << power for power in range(most.bit_length()))


# -- Student's t ---------------------------------------------------------------------------------------------


def _widened(tail: float, clusters: int) -> float:
    """The percentile at which a percentile interval over so many clusters has to be read."""
    z = sqrt(clusters / (clusters - 1)) * t_quantile(1 - tail, clusters - 1)
    return 1 - NormalDist().cdf(z)


@lru_cache(maxsize=256)
def t_quantile(probability: float, freedom: int) -> float:
    """The value that Student's t does not exceed with a probability above one half."""
    low, high = 0.0, 1.0
    while t_within(high, freedom) < 2 * probability - 1:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_within(middle, freedom) < 2 * probability - 1 else (low, middle)
    return (low + high) / 2


def t_within(value: float, freedom: int) -> float:
    """The probability that Student's t lies between `-value` and `value`.

    Source: Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    angle = atan(value / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    terms: list[float] = [term] if freedom > 1 else []
    for number in range(2 + odd, freedom - 1, 2):
        term *= cos(angle) ** 2 * (number - 1) / number
        terms.append(term)
    inner = sin(angle) * fsum(terms)
    return 2 / pi * (angle + inner) if odd else inner


def flattened(values: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, dict[str, float]]:
    """The mean of each scenario's values; scenarios without any are left out."""
    return {
        env_id: {name: fsum(each) / len(each) for name, each in inner.items() if each}
        for env_id, inner in values.items()
    }


# -- means of parts --------------------------------------------------------------------------------------------


def mean_of_parts(parts: Mapping[str, ByScenario], count: int) -> Mean:
    """The mean of the means of parts that count the same, however large they are.

    Groups are drawn anew for the interval, each with what it has in all parts: parts made of the same tasks are alike.

    Args:
        parts: part → group → scenario → value.
        count: episodes behind the values.
    """
    filled = {name: groups for name, groups in parts.items() if any(groups.values())}
    if not filled:
        return Mean(value=None, count=count)
    means = [
        fsum(one for inner in groups.values() for one in inner.values()) / sum(map(len, groups.values()))
        for groups in filled.values()
    ]
    value = fsum(means) / len(means)
    ends = _interval_of_parts(filled)
    low, high = (None, None) if ends is None else (min(ends[0], value), max(ends[1], value))
    scenarios = sum(len(inner) for groups in filled.values() for inner in groups.values())
    return Mean(value=value, count=count, scenarios=scenarios, low=low, high=high)


def _interval_of_parts(parts: Mapping[str, ByScenario]) -> tuple[float, float] | None:
    import numpy as np

    names = sorted({group for groups in parts.values() for group in groups})
    if len(names) < 2:
        return None
    drawn = _drawn(len(names))
    means = []
    for groups in parts.values():
        own = [sorted(groups.get(name, {}).values()) for name in names]
        sums = np.einsum("ij,j->i", drawn, np.array([fsum(one) for one in own]))
        sizes = np.einsum("ij,j->i", drawn, np.array([float(len(one)) for one in own]))
        # A part that none of the groups drawn has says nothing in that draw.
        means.append(np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan))
    tail = _widened((1 - CONFIDENCE) / 2, len(names))
    low, high = np.quantile(np.nanmean(np.array(means), axis=0), [tail, 1 - tail])
    return float(low), float(high)
