"""Percentiles and ratios against values worked out elsewhere."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.bench import paired_ratio, percentile


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


def test_ratio_of_two_pairs_by_hand() -> None:
    """Ratios 2 and 8: mean 4; t(1 degree, 97.5 %) = 12.706 and a standard error of ln 2 give 4 x 2 ** -+12.706."""
    ratio = paired_ratio([2.0, 80.0], [1.0, 10.0])

    assert ratio.value == pytest.approx(4)
    assert ratio.low == pytest.approx(4 * 2**-12.706)
    assert ratio.high == pytest.approx(4 * 2**12.706)


def test_ratio_of_four_pairs_by_hand() -> None:
    """Logs 0, 0, 0.2, 0.2: mean 0.1, deviation 0.11547, error 0.057735, t(3) = 3.182: 0.1 -+ 0.18371."""
    ratio = paired_ratio([1.0, 1.0, math.exp(0.2), math.exp(0.2)], [1.0] * 4)

    assert math.log(ratio.value) == pytest.approx(0.1)
    assert ratio.low is not None
    assert math.log(ratio.low) == pytest.approx(0.1 - 0.18371, abs=1e-5)


def test_single_pair_has_no_interval() -> None:
    """One measurement says nothing of its own spread."""
    ratio = paired_ratio([3.0], [2.0])

    assert ratio.value == pytest.approx(1.5)
    assert [ratio.low, ratio.high] == [None, None]


def test_drift_that_meets_both_alike_does_not_widen_the_interval() -> None:
    """A machine that slows down to a third does not hide a steady advantage of 10 %."""
    base = [100.0, 80.0, 60.0, 33.0]
    ratio = paired_ratio([rate * 1.1 for rate in base], base)

    assert ratio.low == pytest.approx(1.1)
    assert ratio.high == pytest.approx(1.1)


def test_interval_covers_what_it_says() -> None:
    """Of 2000 comparisons of a thing with itself under 5 % noise, about 5 % call it different (3.5 to 6.5 %)."""
    noise = random.Random(1)  # noqa: S311 - noise, not a secret

    def differs() -> bool:
        first, second = ([math.exp(noise.gauss(0, 0.05)) for _ in range(4)] for _ in range(2))
        ratio = paired_ratio(first, second)
        assert ratio.low is not None
        assert ratio.high is not None
        return not ratio.low <= 1 <= ratio.high

    assert 0.035 < sum(differs() for _ in range(2000)) / 2000 < 0.065
