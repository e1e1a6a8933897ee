"""Times between measured ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.errors import ConfigurationError
from pinstripe.simulate import CostPoint, RecordedCost


def _power_law(cores: int, texts: int, tokens: int) -> float:
    return float(0.001 * texts**0.9 * tokens**1.2 / cores)


_GRID = [
    CostPoint(cores, texts, tokens, _power_law(cores, texts, tokens))
    for cores in (1, 4)
    for texts in (1, 4, 16)
    for tokens in (8, 64, 512)
]


@given(st.sampled_from([1, 4]), st.integers(1, 16), st.integers(8, 2048))
def test_powers_are_met_everywhere_between(cores: int, texts: int, tokens: int) -> None:
    """Points of powers of texts and tokens give these powers back, also for longer texts than were measured."""
    assert RecordedCost(_GRID)(cores, texts, tokens) == pytest.approx(_power_law(cores, texts, tokens))


def test_beyond_the_largest_batch() -> None:
    """Twice the texts take twice the time."""
    cost = RecordedCost(_GRID)

    assert cost(1, 64, 64) == pytest.approx(4 * cost(1, 16, 64))


@pytest.mark.parametrize(("times", "twice_as_long"), [((0.1, 0.11), 2), ((0.1, 0.3), 3), ((0.1, 0.9), 4)])
def test_beyond_the_longest(times: tuple[float, float], twice_as_long: float) -> None:
    """Time goes on as between the last two, at least proportionally and at most with the square."""
    cost = RecordedCost([CostPoint(1, 1, 128, times[0]), CostPoint(1, 1, 256, times[1])])

    assert cost(1, 1, 512) == pytest.approx(twice_as_long * times[1])


def test_below_the_shortest() -> None:
    """Shorter texts take no longer, and not proportionally less than what was measured suggests."""
    rising = RecordedCost([CostPoint(1, 1, 16, 0.1), CostPoint(1, 1, 64, 0.2)])
    falling = RecordedCost([CostPoint(1, 1, 16, 0.2), CostPoint(1, 1, 64, 0.1)])

    assert rising(1, 1, 4) == pytest.approx(0.05)
    assert falling(1, 1, 4) == pytest.approx(0.2)


def test_one_point() -> None:
    """A single measurement makes time proportional."""
    assert RecordedCost([CostPoint(2, 4, 100, 0.3)])(2, 2, 200) == pytest.approx(0.3)


def test_repeated_measurements() -> None:
    """Of the same batch the median counts, so that one disturbed run does not."""
    points = [CostPoint(1, 1, 16, seconds) for seconds in (0.1, 7.0, 0.11)]

    assert RecordedCost(points)(1, 1, 16) == pytest.approx(0.11)


def test_bad_input() -> None:
    """Core counts that were not measured, and measurements that cannot be, are refused."""
    with pytest.raises(ConfigurationError, match="on 2 cores, only on 1, 4"):
        RecordedCost(_GRID)(2, 1, 16)
    with pytest.raises(ConfigurationError, match="no measured time"):
        RecordedCost([])
    with pytest.raises(ConfigurationError, match="above 0"):
        RecordedCost([CostPoint(1, 1, 16, 0.0)])
