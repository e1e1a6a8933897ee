"""Texts to batches."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.configuration import BatchRule, InstanceGroup, group_of

__all__ = ["make_batches", "make_class_batches", "padding_fraction"]

_BATCH_COST_TOKENS: Final = 32
"""Tokens that could be computed in the time that a batch takes beyond what grows with its tokens: the way through the
pool and the fixed part of a forward pass. Measured on small encoders, on one to four cores: 8 to 64."""


_NO_BOUND: Final = 1 << 62
_LEAST_TOKENS: Final = 128
"""Batches do not shrink below this towards the end; what is left then is over in some milliseconds."""


def make_batches(
    lengths: Sequence[int] | NDArray[np.integer[Any]], rule: BatchRule, *, last_for: int | None = None
) -> list[NDArray[np.intp]]:
    """Return the batches in the order in which they should run; every text is in exactly one.

    In `sorted` order the texts, longest first, are cut where the sum of computed tokens, padding included, and of 32
    tokens for each batch is least. In `arrival` order each batch takes as many texts as it may.

    Args:
        lengths: Tokens of each text, at least 1.
        rule: How to batch.
        last_for: Number of instances, if these are the last texts for them: then no batch takes more than half of an
            instance's share of what is left (guided self-scheduling, Polychronopoulos and Kuck 1987), so that all
            instances are busy until the end, and end together. None if more texts follow; one instance has nothing to
            share, and takes full batches.

    Returns:
        Indices into `lengths`, an array a batch.
    """
    given = np.asarray(lengths, dtype=np.int64)
    order = np.arange(len(given))
    if rule.order == "sorted":
        order = np.argsort(-given, kind="stable")  # stable, so that a run can be repeated
    ordered = given[order]
    budgets = _budgets(ordered, rule, last_for)
    sizes = (_cheapest_sizes if rule.order == "sorted" else _arrival_sizes)(ordered, rule.texts, budgets)
    return np.split(order, np.cumsum(sizes)[:-1]) if sizes else []


def make_class_batches(
    lengths: Sequence[int] | NDArray[np.integer[Any]],
    rules: Sequence[BatchRule],
    groups: Sequence[InstanceGroup],
    *,
    last_for: int | None = None,
) -> list[NDArray[np.intp]]:
    """Return the batches of all length classes, in an order in which all classes come to their end together.

    Args:
        lengths: Tokens of each text, at least 1.
        rules: How to batch the texts of each group's class; the first one where there are no groups.
        groups: The groups of instances whose classes are kept apart; none for one class of all lengths.
        last_for: See `make_batches`. With groups any number says that these are the last texts; each class's last
            batches are then for the instances of its own group: others help only at the very end, and cutting for
            them costs more than it gains.

    Returns:
        Indices into `lengths`, an array a batch.
    """
    if not groups:
        return make_batches(lengths, rules[0], last_for=last_for)
    given = np.asarray(lengths, dtype=np.int64)
    classes = np.array([group_of(groups, length) for length in given], dtype=np.int64)
    due: list[tuple[float, NDArray[np.intp]]] = []
    for number, (rule, group) in enumerate(zip(rules, groups, strict=True)):
        (members,) = np.nonzero(classes == number)
        total = given[members].sum()
        before = 0
        for batch in make_batches(given[members], rule, last_for=last_for and group.instances):
            due.append((before / total, members[batch]))
            before += given[members[batch]].sum()
    return [batch for _, batch in sorted(due, key=lambda one: one[0])]


def padding_fraction(lengths: Sequence[int] | NDArray[np.integer[Any]], batches: Sequence[NDArray[np.intp]]) -> float:
    """Return the share of the computed tokens that is padding, 0 to 1; 0 for no batches."""
    given = np.asarray(lengths, dtype=np.int64)
    computed = sum(len(batch) * int(given[batch].max()) for batch in batches)
    return 1 - sum(int(given[batch].sum()) for batch in batches) / computed if computed else 0.0


def _budgets(lengths: NDArray[np.int64], rule: BatchRule, last_for: int | None) -> list[int]:
    """Return the most tokens of a batch that begins with each of these texts."""
    budgets = np.full(len(lengths), _NO_BOUND if rule.tokens is None else rule.tokens, dtype=np.int64)
    if last_for is not None and last_for > 1:
        left = np.cumsum(lengths[::-1])[::-1]
        budgets = np.minimum(budgets, np.maximum(left // (2 * last_for), _LEAST_TOKENS))
    return budgets.tolist()


def _arrival_sizes(lengths: NDArray[np.int64], most_texts: int, budgets: list[int]) -> list[int]:
    sizes: list[int] = []
    longest = budget = 0
    for length, own_budget in zip(lengths.tolist(), budgets, strict=True):
        longest = max(longest, length)
        if sizes and sizes[-1] < most_texts and (sizes[-1] + 1) * longest <= budget:
            sizes[-1] += 1
        else:
            sizes.append(1)
            longest, budget = length, own_budget
    return sizes


def _cheapest_sizes(lengths: NDArray[np.int64], most_texts: int, budgets: list[int]) -> list[int]:
    """Return the sizes of the cheapest batches of texts that are sorted, longest first: dynamic programming.

    `cost[i]` is the least cost of the texts from `i` on; the first of their batches, of n texts, costs n times the
    length of text `i`, and leaves `cost[i + n]`.
    """
    count = len(lengths)
    cost = np.zeros(count + 1, dtype=np.int64)
    first_size = [0] * count
    numbers = np.arange(1, min(most_texts, count) + 1)
    for start in range(count - 1, -1, -1):
        length = int(lengths[start])
        most = max(1, min(most_texts, count - start, budgets[start] // length))
        costs = numbers[:most] * length + cost[start + 1 : start + 1 + most]
        best = most - 1 - int(costs[::-1].argmin())  # of equal ones the largest first, so that small ones come last
        cost[start] = costs[best] + _BATCH_COST_TOKENS
        first_size[start] = best + 1
    sizes: list[int] = []
    start = 0
    while start < count:
        sizes.append(first_size[start])
        start += first_size[start]
    return sizes
