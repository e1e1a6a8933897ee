"""Texts to batches."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["BatchRule", "Order", "make_batches", "padding_fraction"]

Order = Literal["sorted", "arrival"]

_MOST_PADDING: Final = 1 / 8
_FREE_PADDING_TOKENS: Final = 32
"""Padding that costs about as much as one more batch would: a forward pass of a small encoder and the way through the
pool take, beyond what grows with its tokens, about as long as some tens of tokens."""


class BatchRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How texts are put into batches.

    Attributes:
        order: `sorted` puts texts of near-equal length together, the longest first, so that little is padding and the
            last batches to end are short ones. `arrival` takes them as they come.
        texts: Most texts in a batch.
        tokens: Most tokens in a batch, padding included; None for no such bound. A text that is longer than that is a
            batch of its own.
    """

    order: Order = "sorted"
    texts: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 4096
    tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None


def make_batches(lengths: Sequence[int] | NDArray[np.integer], rule: BatchRule) -> list[NDArray[np.intp]]:
    """Return the batches in the order in which they should run; every text is in one of them.

    Args:
        lengths: Tokens of each text, at least 1.
        rule: How to batch.

    Returns:
        Indices into `lengths`, an array a batch. In `sorted` order a batch has at most one eighth of padding, or 32
        tokens if that is more.
    """
    given = np.asarray(lengths, dtype=np.int64)
    # Stable, so that equal texts stay in their order and a run can be repeated.
    ordered = np.argsort(-given, kind="stable") if rule.order == "sorted" else np.arange(len(given))
    batches = []
    start = 0
    while start < len(ordered):
        stop = start + _first_batch_size(given[ordered[start : start + rule.texts]], rule)
        batches.append(ordered[start:stop])
        start = stop
    return batches


def padding_fraction(lengths: Sequence[int] | NDArray[np.integer], batches: Sequence[NDArray[np.intp]]) -> float:
    """Return the share of the computed tokens that is padding, 0 to 1; 0 for no batches."""
    given = np.asarray(lengths, dtype=np.int64)
    computed = sum(len(batch) * int(given[batch].max()) for batch in batches)
    return 1 - sum(int(given[batch].sum()) for batch in batches) / computed if computed else 0.0


def _first_batch_size(lengths: NDArray[np.int64], rule: BatchRule) -> int:
    """Return how many of these texts, in this order, make up the first batch."""
    sizes = np.arange(1, len(lengths) + 1)
    computed = np.maximum.accumulate(lengths) * sizes
    fits = np.full(len(lengths), fill_value=True) if rule.tokens is None else computed <= rule.tokens
    if rule.order == "sorted":
        padding = computed - np.cumsum(lengths)
        fits &= padding <= np.maximum(_FREE_PADDING_TOKENS, computed * _MOST_PADDING)
    fits[0] = True
    return len(fits) if fits.all() else int(np.argmin(fits))
