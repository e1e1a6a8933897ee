"""Texts to batches."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.configuration import BatchRule, Order
from pinstripe.dispatch import make_batches, padding_fraction

LENGTHS = st.lists(st.integers(1, 512), max_size=60)
RULES = st.builds(
    BatchRule,
    order=st.sampled_from(["sorted", "arrival"]),
    texts=st.integers(1, 20),
    tokens=st.none() | st.integers(1, 4096),
)


@given(LENGTHS, RULES, st.none() | st.integers(1, 8))
def test_every_text_is_in_one_batch_within_the_limits(
    lengths: list[int], rule: BatchRule, last_for: int | None
) -> None:
    """No text is lost or repeated; only a text that is longer than the budget exceeds it, and then alone."""
    batches = make_batches(lengths, rule, last_for=last_for)

    assert sorted(index for batch in batches for index in batch.tolist()) == list(range(len(lengths)))
    for batch in batches:
        computed = len(batch) * max(lengths[index] for index in batch)
        assert 1 <= len(batch) <= rule.texts
        assert rule.tokens is None or computed <= rule.tokens or len(batch) == 1


@given(LENGTHS, RULES)
def test_orders(lengths: list[int], rule: BatchRule) -> None:
    """`sorted` runs the longest first, equal ones as they came; `arrival` changes nothing."""
    order = [index for batch in make_batches(lengths, rule) for index in batch.tolist()]
    expected = sorted(range(len(lengths)), key=lambda index: -lengths[index])

    assert order == (expected if rule.order == "sorted" else list(range(len(lengths))))


@given(st.lists(st.integers(1, 300), min_size=1, max_size=9), st.integers(1, 9), st.none() | st.integers(100, 900))
def test_sorted_batches_are_the_cheapest(lengths: list[int], most_texts: int, budget: int | None) -> None:
    """No way of cutting the sorted texts costs less, counting 32 tokens for each batch."""
    ordered = sorted(lengths, reverse=True)

    def cost(cuts: tuple[int, ...]) -> float:
        parts = [ordered[begin:end] for begin, end in itertools.pairwise((0, *cuts, len(ordered)))]
        too_much = [part for part in parts if len(part) > 1 and budget and len(part) * part[0] > budget]
        if too_much or any(len(part) > most_texts for part in parts):
            return float("inf")
        return sum(len(part) * part[0] + 32 for part in parts)

    places = range(1, len(ordered))
    best = min(cost(cuts) for count in range(len(ordered)) for cuts in itertools.combinations(places, count))
    batches = make_batches(lengths, BatchRule(texts=most_texts, tokens=budget))

    assert sum(len(batch) * max(lengths[index] for index in batch) + 32 for batch in batches) == best


def test_arrival_batches_are_filled_in_turn() -> None:
    """With room for 100 tokens: 3 x 30, then 2 x 45 (30 more would be 3 x 45), then what is left."""
    batches = make_batches([30, 10, 20, 45, 30, 40, 200, 5], BatchRule(order="arrival", tokens=100))

    assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4], [5], [6], [7]]


@pytest.mark.parametrize("order", ["sorted", "arrival"])
def test_few_texts_keep_all_instances_busy(order: Order) -> None:
    """Of 64 texts of 32 tokens no instance of 8 gets more than half of its share at first: 2048 / 8 / 2 = 128."""
    batches = make_batches([32] * 64, BatchRule(order=order, tokens=4096), last_for=8)

    assert [len(batch) for batch in batches] == [4] * 16


def test_the_last_batches_shrink() -> None:
    """Each takes at most half an instance's share of what is left, down to 128 tokens: all instances end together."""
    lengths = [16] * 4096
    batches = make_batches(lengths, BatchRule(tokens=8192), last_for=2)
    left = 16 * 4096
    for batch in batches:
        assert 16 * len(batch) <= max(128, left / 4)
        left -= 16 * len(batch)

    assert len(batches[0]) * 16 == 8192
    assert len(batches[-1]) * 16 <= 128
    assert len(batches) < 30


def test_padding_by_hand() -> None:
    """Lengths 4 and 2 in one batch compute 8 tokens for 6; 3 alone computes 3: 2 of 11 are padding."""
    assert padding_fraction([4, 2, 3], [np.array([0, 1]), np.array([2])]) == pytest.approx(2 / 11)
    assert padding_fraction([], []) == 0
