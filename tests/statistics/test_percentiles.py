"""Percentiles, their bounds and outliers against values worked out elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.statistics import count_outliers, percentile, percentile_rank_bound


@pytest.mark.parametrize(("percent", "expected"), [(5, 15), (30, 20), (40, 20), (50, 35), (100, 50)])
def test_percentile_is_the_nearest_rank(percent: float, expected: int) -> None:
    """The worked example of the nearest-rank method (Wikipedia, "Percentile")."""
    assert percentile([35, 20, 15, 50, 40], percent) == expected


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.integers(1, 100))
def test_percentile_is_a_value_that_enough_values_do_not_exceed(values: list[int], percent: int) -> None:
    """At least `percent` % of the values are at or below it, and fewer are below it."""
    found = percentile(values, percent)

    assert found in values
    assert sum(value <= found for value in values) >= len(values) * percent / 100
    assert sum(value < found for value in values) < len(values) * percent / 100


@pytest.mark.parametrize(
    ("n", "percent", "from_the_top"),
    [
        (299, 99, 1),
        (1_000, 99, 5),
        (5_000, 99, 39),
        (10_000, 99, 84),
        (59, 95, 1),
        (2_995, 99.9, 1),
        (5, 50, 1),
        (29, 90, 1),
        # Exact two-sided 90 % interval of a median of 10 (Dixon and Massey, table A-25): the 2nd and the 9th value.
        (10, 50, 2),
        (1_000_000, 50, 499_178),
    ],
)
def test_bound_of_a_percentile_is_the_published_value(n: int, percent: float, from_the_top: int) -> None:
    """Order statistics as MLPerf's early stopping has them; the last by the normal approximation, 1.645 deviations."""
    rank = percentile_rank_bound(n, percent)

    assert rank is not None
    assert n + 1 - rank == pytest.approx(from_the_top, abs=1 if n == 1_000_000 else 0)


@pytest.mark.parametrize(("n", "percent"), [(298, 99), (58, 95), (2_994, 99.9), (4, 50), (28, 90), (1, 99)])
def test_too_few_values_have_no_bound(n: int, percent: float) -> None:
    """0.99 to the power of 298 is above 5 %: the largest of so few values may well be below p99."""
    assert percentile_rank_bound(n, percent) is None


@given(st.integers(1, 400), st.sampled_from([50, 90, 95, 99]))
def test_bound_is_never_below_its_percentile(n: int, percent: int) -> None:
    """A bound lies at or above the value it bounds, within the values."""
    rank = percentile_rank_bound(n, percent)

    assert rank is None or percentile(range(1, n + 1), percent) <= rank <= n


def test_outliers_are_those_beyond_ten_deviations() -> None:
    """Median 100, median deviation 2: the limit is 29.65, so that 129 is ordinary, and 130 and 70 stand out."""
    ordinary = [96, 98, 98, 99, 100, 100, 101, 102, 102, 104]

    assert count_outliers(ordinary) == 0
    assert count_outliers([*ordinary, 129, 71]) == 0
    assert count_outliers([*ordinary, 130, 70]) == 2
