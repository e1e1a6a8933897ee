"""How alike two embeddings are, by the function that the model's authors name."""

import numpy as np
from numpy.typing import NDArray

from pinstripe.accuracy.statistics import cosines
from pinstripe.models import Similarity

__all__ = ["similarities"]


def similarities(first: NDArray[np.float32], second: NDArray[np.float32], function: Similarity) -> NDArray[np.float64]:
    """Return the similarity of each pair of rows, the more alike the higher: distances are negative.

    That is how sentence-transformers' `SimilarityFunction` defines them.

    Args:
        first: [n, width].
        second: [n, width].
        function: See `Network.similarity`.
    """
    left, right = first.astype(np.float64), second.astype(np.float64)
    match function:
        case "cosine":
            return cosines(first, second)
        case "dot":
            products: NDArray[np.float64] = np.einsum("ij,ij->i", left, right)
            return products
        case "euclidean":
            return -np.asarray(np.linalg.norm(left - right, axis=1))
        case "manhattan":
            return -np.asarray(np.abs(left - right).sum(axis=1))
