"""How much faster one configuration is than another, and whether that is certain."""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["DECIDING_PAIRS", "Ratio", "RatioMethod", "Verdict", "paired_ratio"]

RatioMethod = Literal["single", "student", "bootstrap"]
Verdict = Literal["faster", "slower", "undecided"]

DECIDING_PAIRS: Final = 16
"""Pairs that find a difference of 5 % in at least 95 of 100 comparisons under the noise of a usual shared machine: 2 %
from window to window, drift, and one window in thirty disturbed (simulated in `tests/bench/test_comparison.py`)."""

_LEAST_BOOTSTRAPPED: Final = 6
"""With n pairs, all point the same way by chance with probability 2 * 2**-n, so fewer than six cannot reach 95 %."""
_RESAMPLES: Final = 2_000
_AVERAGES_AT_ONCE: Final = 2_000_000
"""Bounds the memory that resampling takes."""

# Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1: NIST/SEMATECH e-Handbook of Statistical
# Methods, section 1.3.6.7.2 (column 0.975). Beyond the table the last value errs on the wide side.
_T_95: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


class Ratio(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many times faster one configuration is than another.

    Attributes:
        value: Typical ratio of a pair: with `bootstrap` the Hodges-Lehmann estimate, else the geometric mean.
        low: Lower end of the 95 % confidence interval; None with a single pair.
        high: Upper end; None with a single pair.
        pairs: Number of pairs.
        method: How the interval was found: `bootstrap` from six pairs on, `student` below, `single` has none.
        verdict: `faster` or `slower` if the interval excludes 1, else `undecided`.
    """

    value: float
    low: float | None
    high: float | None
    pairs: int
    method: RatioMethod
    verdict: Verdict


def paired_ratio(rates: Sequence[float], base_rates: Sequence[float], *, seed: int = 0) -> Ratio:
    """Compare two configurations whose rates were measured in turn, pair by pair.

    Pairs share what drifts slowly (clock, temperature, neighbours), so the ratio of a pair says more than the ratio of
    two means. From six pairs on, the logarithms of the ratios are summed up by the Hodges-Lehmann estimate (the median
    of the averages of any two), which a few disturbed pairs hardly move although none is left out, and its interval
    is a bootstrap's. The plain percentile bootstrap is too narrow for few pairs, so its tails are cut off at
    `Phi(-sqrt(n / (n - 1)) * t)` instead of 2.5 %, with Student's t for n pairs: the expanded percentile interval of
    Hesterberg, What Teachers Should Know about the Bootstrap (arXiv 1411.5279). With fewer pairs, the interval is
    Student's t around the mean.

    Args:
        rates: One rate a pair, above 0; at least one.
        base_rates: The rate it is compared with, in the same order and number.
        seed: Of the resampling; equal values and seed give an equal answer.
    """
    logs = [math.log(rate / base) for rate, base in zip(rates, base_rates, strict=True)]
    if len(logs) == 1:
        return _ratio(logs[0], None, 1, "single")
    if len(logs) < _LEAST_BOOTSTRAPPED:
        mean, margin = fmean(logs), _t_95(len(logs)) * stdev(logs) / math.sqrt(len(logs))
        return _ratio(mean, (mean - margin, mean + margin), len(logs), "student")
    values = np.array(logs)
    return _ratio(_hodges_lehmann(values[None])[0], _bootstrapped(values, seed), len(logs), "bootstrap")


def _ratio(value: float, interval: tuple[float, float] | None, pairs: int, method: RatioMethod) -> Ratio:
    low, high = interval or (-math.inf, math.inf)
    return Ratio(
        value=math.exp(value),
        low=math.exp(low) if interval else None,
        high=math.exp(high) if interval else None,
        pairs=pairs,
        method=method,
        verdict="faster" if low > 0 else "slower" if high < 0 else "undecided",
    )


def _t_95(n: int) -> float:
    return _T_95[min(n - 2, len(_T_95) - 1)]


def _bootstrapped(values: NDArray[np.float64], seed: int) -> tuple[float, float]:
    n = len(values)
    generator = np.random.default_rng(seed)
    at_once = max(1, _AVERAGES_AT_ONCE // (n * n))
    estimates = np.concatenate(
        [
            _hodges_lehmann(values[generator.integers(0, n, (min(at_once, _RESAMPLES - done), n))])
            for done in range(0, _RESAMPLES, at_once)
        ]
    )
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * _t_95(n))
    low, high = np.quantile(estimates, (tail, 1 - tail))
    return float(low), float(high)


def _hodges_lehmann(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each row, the median of the averages of any two of its values, each with itself included."""
    first, second = np.triu_indices(rows.shape[1])
    sums = rows[:, first] + rows[:, second]
    lower, upper = (sums.shape[1] - 1) // 2, sums.shape[1] // 2
    sums.partition((lower, upper), axis=1)
    estimates: NDArray[np.float64] = (sums[:, lower] + sums[:, upper]) / 4
    return estimates
