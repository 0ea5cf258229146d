"""Shares of successes: their interval, and a test that may be looked at as often as one likes.

What is counted, and what follows, is the caller's business.

Source: interval: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference". Test: Robbins
1970, "Statistical Methods Related to the Law of the Iterated Logarithm" (likelihood ratios mixed over the other side,
bounded by Ville's inequality).
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, sqrt
from statistics import NormalDist
from typing import Literal

CONFIDENCE = 0.95
ERROR_LEVEL = 0.05
"""Chance at most that a rate below the threshold is ever taken for settled above it, and the other way round."""

Side = Literal["above", "below"]


def wilson(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The interval of a share; None without trials."""
    if not trials:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    middle = share + z * z / (2 * trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    whole = 1 + z * z / trials
    # Rounding must not put the share itself outside.
    return min(share, max(0.0, (middle - half) / whole)), max(share, min(1.0, (middle + half) / whole))


def settled(successes: int, trials: int, threshold: float, error: float = ERROR_LEVEL) -> Side | None:
    """On which side of the threshold the true rate lies, once that is settled; a rate at the threshold is above it.

    However often this is asked while trials go on, it says "above" of a rate below the threshold with a chance of
    `error` at most, and "below" of one above it too. Trials count as independent.
    """
    failures = trials - successes
    if threshold <= 0:
        return "above"
    if threshold >= 1:
        return "below" if failures else None
    for side in ("above", "below"):
        if _log_evidence(successes, failures, threshold, side) >= -log(error):
            return side
    return None


@lru_cache(maxsize=4096)
def _log_evidence(successes: int, failures: int, threshold: float, side: Side) -> float:
    """Logarithm of the likelihood ratio of all rates on one side, each as likely as the others, to the threshold."""
    trials = successes + failures
    # The mass of Beta(successes + 1, failures + 1) above t is the chance of `successes` or fewer in trials + 1 at t.
    counted = range(successes + 1) if side == "above" else range(successes + 1, trials + 2)
    mass = sum(exp(_log_binomial(count, trials + 1, threshold)) for count in counted)
    if mass <= 0:
        return float("-inf")
    beta = lgamma(successes + 1) + lgamma(failures + 1) - lgamma(trials + 2)
    width = 1 - threshold if side == "above" else threshold
    return beta + log(mass) - log(width) - successes * log(threshold) - failures * log(1 - threshold)


def _log_binomial(count: int, trials: int, rate: float) -> float:
    ways = lgamma(trials + 1) - lgamma(count + 1) - lgamma(trials - count + 1)
    return ways + count * log(rate) + (trials - count) * log(1 - rate)
