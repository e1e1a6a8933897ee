"""Comparisons: against values worked out by hand, and over many of which the truth is known."""

import math

import numpy as np
import pytest

from pinstripe.bench import DECIDING_PAIRS, Ratio, paired_ratio


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


def test_from_six_pairs_on_a_wild_pair_hardly_moves_the_ratio() -> None:
    """One round of eight was disturbed to a tenth of the rate; the others say 1.1, and so does the estimate."""
    base = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0, 103.0, 97.0]
    rates = [rate * 1.1 for rate in base]
    rates[3] = 10.0
    ratio = paired_ratio(rates, base)

    assert ratio.method == "bootstrap"
    assert ratio.value == pytest.approx(1.1)


def test_value_is_the_hodges_lehmann_estimate() -> None:
    """Logs 0, 1, 2, 4, 8, 16: of the 21 averages of two, sorted, the 11th is 4."""
    ratio = paired_ratio([math.exp(log) for log in (0, 1, 2, 4, 8, 16)], [1.0] * 6)

    assert math.log(ratio.value) == pytest.approx(4)
    assert ratio.low is not None
    assert ratio.low <= ratio.value


@pytest.mark.parametrize(
    ("rates", "method", "verdict"),
    [
        ([1.1], "single", "undecided"),
        ([1.1, 1.1001, 1.1002], "student", "faster"),
        ([0.9, 0.9001, 0.9002], "student", "slower"),
        ([1.1, 0.9], "student", "undecided"),
        ([1.1, 1.11, 1.12, 1.1, 1.11, 1.12], "bootstrap", "faster"),
        ([0.9, 0.91, 0.92, 0.9, 0.91, 0.92], "bootstrap", "slower"),
        ([1.1, 0.9, 1.1, 0.9, 1.1, 0.9], "bootstrap", "undecided"),
    ],
)
def test_verdict_says_what_the_interval_excludes(rates: list[float], method: str, verdict: str) -> None:
    """Faster or slower only if 1 is outside; how the interval was found is said."""
    ratio = paired_ratio(rates, [1.0] * len(rates))

    assert (ratio.method, ratio.verdict) == (method, verdict)


def test_answer_is_repeatable() -> None:
    """Equal values have equal intervals, today and tomorrow, and turning the comparison round mirrors them nearly."""
    rates, base = _arms(np.random.default_rng(5), 12)
    ratio, again, turned = paired_ratio(rates, base), paired_ratio(rates, base), paired_ratio(base, rates)

    assert ratio == again
    assert ratio.low is not None
    assert turned.high == pytest.approx(1 / ratio.low, rel=0.005)


def test_many_pairs_take_bounded_time() -> None:
    """Many pairs are summed up too, as narrowly as the normal distribution has it (1.96 deviations, 4 % each)."""
    generator = np.random.default_rng(1)
    logs = generator.normal(0, 0.04, 150)
    ratio = paired_ratio(np.exp(logs).tolist(), [1.0] * 150)

    assert ratio.low is not None
    assert ratio.high is not None
    assert math.log(ratio.high / ratio.low) == pytest.approx(2 * 1.96 * 0.04 / math.sqrt(150), rel=0.2)


def _arms(generator: np.random.Generator, pairs: int, factor: float = 1.0) -> tuple[list[float], list[float]]:
    """Return the rates of two configurations on a shared machine, the first by `factor` faster.

    2 % lognormal noise from window to window, a drift of 2 % a round that both share, and one window in thirty that a
    neighbour slows down by 10 % on average.
    """
    drift = np.cumsum(generator.normal(0, 0.02, pairs))
    arms = []
    for _ in range(2):
        disturbed = generator.random(pairs) < 1 / 30
        slowing = np.where(disturbed, generator.exponential(0.1, pairs), 0)
        arms.append(100 * np.exp(drift + generator.normal(0, 0.02, pairs) - slowing))
    return (factor * arms[0]).tolist(), arms[1].tolist()


def _verdicts(seed: int, count: int, pairs: int, factor: float = 1.0) -> list[str]:
    generator = np.random.default_rng(seed)
    return [paired_ratio(*_arms(generator, pairs, factor)).verdict for _ in range(count)]


@pytest.mark.parametrize("seed", range(2))
def test_of_100_comparisons_with_itself_at_most_8_differ(seed: int) -> None:
    """At 95 % confidence five are to be expected."""
    assert 100 - _verdicts(seed, 100, DECIDING_PAIRS).count("undecided") <= 8


@pytest.mark.parametrize("seed", range(2))
def test_slowdown_of_five_percent_is_found(seed: int) -> None:
    """With the recommended number of pairs, at least 95 times of 100."""
    assert _verdicts(seed, 100, DECIDING_PAIRS, 1 / 1.05).count("slower") >= 95


@pytest.mark.parametrize("pairs", [3, 5, 6, 8, 12])
def test_interval_covers_what_it_says(pairs: int) -> None:
    """Of 400 comparisons of a thing with itself, 5 % are called different, give or take three deviations (3.3 %)."""
    differ = 400 - _verdicts(pairs, 400, pairs).count("undecided")

    assert 400 * 0.017 <= differ <= 400 * 0.083


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [6, 8, 10, 20])
def test_coverage_is_near_95_percent(pairs: int) -> None:
    """Over 2000 comparisons of a truth of 1.3, 93 to 97.5 of 100 intervals hold it; they miss on both sides alike."""
    generator = np.random.default_rng(100 + pairs)
    ratios = [paired_ratio(*_arms(generator, pairs, 1.3)) for _ in range(2000)]
    below = sum(_bounds(ratio)[1] < 1.3 for ratio in ratios) / 2000
    above = sum(_bounds(ratio)[0] > 1.3 for ratio in ratios) / 2000

    assert 0.025 <= below + above <= 0.07
    assert below == pytest.approx(above, abs=0.015)


def _bounds(ratio: Ratio) -> tuple[float, float]:
    assert ratio.low is not None
    assert ratio.high is not None
    return ratio.low, ratio.high
