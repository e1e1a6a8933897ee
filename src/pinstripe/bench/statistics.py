"""What raw values say, and how sure that is."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Final

import msgspec

__all__ = ["Ratio", "paired_ratio", "percentile"]

# Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1: NIST/SEMATECH e-Handbook of Statistical
# Methods, section 1.3.6.7.2 (column 0.975). Beyond the table the last value errs on the wide side.
_T_95: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def percentile(values: Sequence[int], percent: float) -> int:
    """Return the smallest value that at least `percent` % of the values do not exceed (nearest rank).

    Args:
        values: At least one, in any order.
        percent: Above 0, at most 100.
    """
    rank = max(1, math.ceil(len(values) * percent / 100))
    return sorted(values)[rank - 1]


class Ratio(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many times faster one configuration is than another.

    Attributes:
        value: Geometric mean of the ratios of the pairs.
        low: Lower end of the 95 % confidence interval; None with a single pair.
        high: Upper end; None with a single pair.
        pairs: Number of pairs.
    """

    value: float
    low: float | None
    high: float | None
    pairs: int


def paired_ratio(rates: Sequence[float], base_rates: Sequence[float]) -> Ratio:
    """Compare two configurations whose rates were measured in turn, pair by pair.

    Pairs share what drifts slowly (clock, temperature, neighbours), so the ratio of a pair says more than the ratio of
    two means. The interval is Student's t on the logarithms of the ratios.

    Args:
        rates: One rate a pair, above 0.
        base_rates: The rate it is compared with, in the same order and number.
    """
    logs = [math.log(rate / base) for rate, base in zip(rates, base_rates, strict=True)]
    mean = fmean(logs)
    if len(logs) == 1:
        return Ratio(value=math.exp(mean), low=None, high=None, pairs=1)
    margin = _T_95[min(len(logs) - 2, len(_T_95) - 1)] * stdev(logs) / math.sqrt(len(logs))
    return Ratio(value=math.exp(mean), low=math.exp(mean - margin), high=math.exp(mean + margin), pairs=len(logs))
