"""Where the floor lies."""

import math

import pytest

from pinstripe.accuracy import Comparison, CosineSummary, judge


def _cosines(mean: float, p1: float) -> Comparison:
    return Comparison(n=200, cosine=CosineSummary(min=0.5, p1=p1, mean=mean))


@pytest.mark.parametrize(
    ("comparison", "passed"),
    [
        (_cosines(0.99, 0.97), True),
        (_cosines(0.9899, 0.98), False),
        (_cosines(0.995, 0.9699), False),
        (_cosines(math.nan, math.nan), False),
        (Comparison(n=1, label_agreement=0.99), True),
        (Comparison(n=1, label_agreement=0.9899, largest_probability_difference=0.0), False),
        (Comparison(n=1, answer_agreement=0.99, answer_f1=0.1), True),
        (Comparison(n=1, answer_agreement=0.98, answer_f1=1.0), False),
        (Comparison(n=1, rank_correlation=0.99), True),
        (Comparison(n=1, rank_correlation=0.9899), False),
        (Comparison(n=1, rank_correlation=None, largest_difference=0.0), False),
    ],
)
def test_each_limb_has_its_bound(comparison: Comparison, *, passed: bool) -> None:
    """What is on the floor passes; what is below it, or no number, does not, and there is a reason."""
    verdict = judge(comparison)

    assert verdict.passed is passed
    assert bool(verdict.reasons) is not passed


def test_reasons_have_numbers() -> None:
    """Both limbs that fail are named with what they are and what they should be."""
    verdict = judge(_cosines(0.98, 0.9))

    assert verdict.reasons == ("mean cosine 0.98000 is below 0.99", "p1 of cosines 0.90000 is below 0.97")


@pytest.mark.parametrize(
    ("spearman", "passed"), [(0.8, True), (0.7951, True), (0.79, False), (None, False), (0.9, True)]
)
def test_ratings_may_stand_in_for_cosines(spearman: float | None, *, passed: bool) -> None:
    """Vectors may turn, if people's order of pairs is kept within 0.005."""
    assert judge(_cosines(0.9, 0.8), spearman=spearman, reference_spearman=0.8).passed is passed


def test_cosines_are_enough_with_ratings_too() -> None:
    """It takes one or the other."""
    assert judge(_cosines(0.999, 0.99), spearman=0.7, reference_spearman=0.8).passed


def test_neighbours_may_not_matter_more_than_that() -> None:
    """A text that changes with its neighbours is below the floor, whatever people's scores say."""
    verdict = judge(_cosines(0.999, 0.99), batch_invariance=_cosines(0.98, 0.98), spearman=0.8, reference_spearman=0.8)

    assert verdict.reasons == ("alone and among longer texts: mean cosine 0.98000 is below 0.99",)
    assert not verdict.passed
