"""Percentiles of raw values, how high they may truly be, and which values stand out."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Final, TypeVar

__all__ = ["count_outliers", "percentile", "percentile_rank_bound"]

Number = TypeVar("Number", bound=float)

_CONFIDENCE: Final = 0.95
_OUTLIER_DEVIATIONS: Final = 1.4826 * 10
"""Median absolute deviations beyond which a value stands out: 1.4826 of them estimate one standard deviation of normal
values (Iglewicz and Hoaglin 1993), and ten of those is hyperfine's threshold (its `OUTLIER_THRESHOLD`)."""


def percentile(values: Sequence[Number], percent: float) -> Number:
    """Return the smallest value that at least `percent` % of the values do not exceed (nearest rank).

    Args:
        values: At least one, in any order.
        percent: Above 0, at most 100.
    """
    rank = max(1, math.ceil(len(values) * percent / 100))
    return sorted(values)[rank - 1]


def percentile_rank_bound(n: int, percent: float) -> int | None:
    """Return the rank of the value that bounds a percentile from above with 95 % confidence.

    Of `n` independent values, the number above the true percentile is binomial. The k-th largest value is a bound if
    fewer than k lie above it with a probability of at most 5 %; the largest such k is taken (Hahn and Meeker,
    Statistical Intervals, chapter 5; MLPerf's early stopping uses the same). Batches that wait behind each other are
    not independent, so under queueing the bound is optimistic.

    Args:
        n: Number of values, at least 1.
        percent: Above 0, below 100.

    Returns:
        The rank from the smallest, 1 to `n`; None if `n` is too small for any: p95 needs 59, p99 needs 299.
    """
    share_above = 1 - percent / 100
    mean, deviation = n * share_above, math.sqrt(n * share_above * (1 - share_above))
    # What lies ten deviations below the mean adds less than any digit that matters.
    above = max(0, math.floor(mean - 10 * deviation - 10))
    at_most = 0.0
    while (at_most := at_most + _binomial(n, above, share_above)) <= 1 - _CONFIDENCE:
        above += 1
    return n - above + 1 if above > 0 else None


def count_outliers(values: Sequence[int]) -> int:
    """Return how many values lie more than 14.8 median absolute deviations from the median.

    Args:
        values: At least one, in any order.
    """
    middle = median(values)
    deviations = [abs(value - middle) for value in values]
    limit = _OUTLIER_DEVIATIONS * median(deviations)
    return sum(deviation > limit for deviation in deviations)


def _binomial(n: int, k: int, share: float) -> float:
    """The probability of `k` successes in `n` tries; logarithms, as factorials overflow."""
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(share) + (n - k) * math.log1p(-share))
