"""How alike numbers are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinstripe.accuracy.statistics import average_ranks, cosines, first_percentile, spearman

FEW_VALUES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30)
"""Pairs of numbers with many ties."""


@settings(deadline=None)  # scipy is imported in the first one
@given(FEW_VALUES)
def test_spearman_is_scipys(pairs: list[tuple[int, int]]) -> None:
    """Ties share their ranks as scipy has it; where it has no number, there is none."""
    scipy_stats = pytest.importorskip("scipy.stats")
    first, second = np.array(pairs).T
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert spearman(first, second) is None
    else:
        assert spearman(first, second) == pytest.approx(scipy_stats.spearmanr(first, second).statistic, abs=1e-12)


def test_spearman_of_a_published_example() -> None:
    """Hours of television and IQ, as Wikipedia's article on the coefficient has it: -29/165."""
    iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]

    assert spearman(iq, hours) == pytest.approx(-29 / 165)


@pytest.mark.parametrize("values", [[], [1.0]])
def test_too_few_values_have_no_correlation(values: list[float]) -> None:
    """There is no order among less than two."""
    assert spearman(values, values) is None


def test_ranks_of_equal_values() -> None:
    """Two values in second place take up the ranks 2 and 3, and share 2.5."""
    assert average_ranks([20, 10, 30, 20]).tolist() == [2.5, 1, 4, 2.5]


@pytest.mark.parametrize(("count", "rank"), [(1, 1), (100, 1), (101, 2), (200, 2), (201, 3)])
def test_first_percentile_is_a_value(count: int, rank: int) -> None:
    """Nearest rank: the one behind which at most 99 % lie."""
    assert first_percentile(range(count, 0, -1)) == rank


def test_cosines_by_hand() -> None:
    """Length does not matter, direction does; nothing is like nothing, and unlike anything else."""
    first = np.array([[3, 0], [1, 1], [1, 0], [0, 0], [0, 0]], np.float32)
    second = np.array([[5, 0], [0, 2], [-1, 0], [0, 0], [1, 0]], np.float32)

    assert cosines(first, second) == pytest.approx([1, 0.5**0.5, -1, 1, 0])


def test_cosines_of_short_vectors() -> None:
    """Vectors of 1e-30 have a direction, too."""
    tiny = np.full((1, 4), 1e-30, np.float32)

    assert cosines(tiny, tiny) == pytest.approx([1])
