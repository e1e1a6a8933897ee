"""Numbers that say how alike two sets of outputs are."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["average_ranks", "cosines", "first_percentile", "spearman"]

_ONE_PERCENT: Final = 0.01


def spearman(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return Spearman's rank correlation: Pearson's of the average ranks.

    Args:
        first: Finite numbers [n].
        second: As many.

    Returns:
        -1 to 1; None if either side is constant, or has fewer than two values: then it is undefined.
    """
    ranks = [average_ranks(one) for one in (first, second)]
    left, right = (one - one.mean() if len(one) else one for one in ranks)
    scale = float(np.sqrt((left @ left) * (right @ right)))
    return None if scale == 0 else float(np.clip(left @ right / scale, -1, 1))


def average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Return the rank of each value, from 1; equal values share the mean of the ranks that they take up."""
    _, positions, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: NDArray[np.float64] = (last - (counts - 1) / 2)[positions]
    return shared


def first_percentile(values: ArrayLike) -> float:
    """Return the smallest value that at least 1 % of the values do not exceed (nearest rank).

    With up to 100 values that is the smallest.
    """
    return float(np.quantile(np.asarray(values, np.float64), _ONE_PERCENT, method="inverted_cdf"))


def cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each pair of rows, -1 to 1.

    A vector of zeros has no direction: its cosine is 1 with another one, and 0 with anything else.

    Args:
        first: [n, width].
        second: [n, width].
    """
    left, right = first.astype(np.float64), second.astype(np.float64)
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    products = np.einsum("ij,ij->i", left, right)
    both_zero = ~left.any(axis=1) & ~right.any(axis=1)
    directed = np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0)
    return np.where(both_zero, 1.0, np.clip(directed, -1, 1))
