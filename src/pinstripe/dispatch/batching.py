"""Texts to batches."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.configuration import BatchRule

__all__ = ["make_batches", "padding_fraction"]

_BATCH_COST_TOKENS: Final = 32
"""Tokens that could be computed in the time that a batch takes beyond what grows with its tokens: the way through the
pool and the fixed part of a forward pass. Measured on small encoders, on one to four cores: 8 to 64."""


def make_batches(lengths: Sequence[int] | NDArray[np.integer[Any]], rule: BatchRule) -> list[NDArray[np.intp]]:
    """Return the batches in the order in which they should run; every text is in exactly one.

    In `sorted` order the texts, longest first, are cut where the sum of computed tokens, padding included, and of 32
    tokens for each batch is least. In `arrival` order each batch takes as many texts as it may.

    Args:
        lengths: Tokens of each text, at least 1.
        rule: How to batch.

    Returns:
        Indices into `lengths`, an array a batch.
    """
    given = np.asarray(lengths, dtype=np.int64)
    if rule.order == "arrival":
        order = np.arange(len(given))
        sizes = _arrival_sizes(given, rule)
    else:
        order = np.argsort(-given, kind="stable")  # stable, so that a run can be repeated
        sizes = _cheapest_sizes(given[order], rule)
    return np.split(order, np.cumsum(sizes)[:-1]) if sizes else []


def padding_fraction(lengths: Sequence[int] | NDArray[np.integer[Any]], batches: Sequence[NDArray[np.intp]]) -> float:
    """Return the share of the computed tokens that is padding, 0 to 1; 0 for no batches."""
    given = np.asarray(lengths, dtype=np.int64)
    computed = sum(len(batch) * int(given[batch].max()) for batch in batches)
    return 1 - sum(int(given[batch].sum()) for batch in batches) / computed if computed else 0.0


def _arrival_sizes(lengths: NDArray[np.int64], rule: BatchRule) -> list[int]:
    sizes: list[int] = []
    longest = 0
    for length in lengths.tolist():
        longest = max(longest, length)
        if sizes and _fits(sizes[-1] + 1, longest, rule):
            sizes[-1] += 1
        else:
            sizes.append(1)
            longest = length
    return sizes


def _fits(texts: int, longest: int, rule: BatchRule) -> bool:
    return texts <= rule.texts and (rule.tokens is None or texts * longest <= rule.tokens)


def _cheapest_sizes(lengths: NDArray[np.int64], rule: BatchRule) -> list[int]:
    """Return the sizes of the cheapest batches of texts that are sorted, longest first: dynamic programming.

    `cost[i]` is the least cost of the texts from `i` on; the first of their batches, of n texts, costs n times the
    length of text `i`, and leaves `cost[i + n]`.
    """
    count = len(lengths)
    cost = np.zeros(count + 1, dtype=np.int64)
    first_size = [0] * count
    numbers = np.arange(1, min(rule.texts, count) + 1)
    for start in range(count - 1, -1, -1):
        length = int(lengths[start])
        most = min(rule.texts, count - start)
        if rule.tokens is not None:
            most = max(1, min(most, rule.tokens // length))
        costs = numbers[:most] * length + cost[start + 1 : start + 1 + most]
        best = int(costs.argmin())
        cost[start] = costs[best] + _BATCH_COST_TOKENS
        first_size[start] = best + 1
    sizes: list[int] = []
    start = 0
    while start < count:
        sizes.append(first_size[start])
        start += first_size[start]
    return sizes
