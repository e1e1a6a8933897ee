"""Hidden states of tokens to one vector a text.

Definitions as in the Pooling module of sentence-transformers. Each text is pooled over its own tokens only: what a
network leaves at padding positions, even NaN, is never read, and a text's vector does not depend on its neighbours.
No BLAS is called, since its threads would spin for a while on the cores that the engine computes on.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pinstripe.models.network import PoolingMode
from pinstripe.models.tokens import TokenBatch

__all__ = ["pool"]

_Tokens = NDArray[np.float32]
"""[tokens, hidden_size] of one text."""


def pool(hidden: NDArray[np.float32], batch: TokenBatch, modes: Sequence[PoolingMode]) -> NDArray[np.float32]:
    """Return float32 [batch, len(modes) * hidden_size]: the results of all modes side by side.

    Args:
        hidden: float32 [batch, sequence, hidden_size], the last hidden state.
        batch: What it was computed from.
        modes: At least one.
    """
    width = hidden.shape[2]
    pooled = np.empty((batch.size, len(modes) * width), dtype=np.float32)
    for column, mode in enumerate(modes):
        reduce = _REDUCTIONS[mode]
        place = slice(column * width, (column + 1) * width)
        for row, length in enumerate(batch.lengths.tolist()):
            reduce(hidden[row, :length], pooled[row, place])
    return pooled


def _mean(tokens: _Tokens, result: NDArray[np.float32]) -> None:
    np.add.reduce(tokens, axis=0, out=result)
    result /= np.float32(len(tokens))


def _mean_sqrt(tokens: _Tokens, result: NDArray[np.float32]) -> None:
    np.add.reduce(tokens, axis=0, out=result)
    result /= np.sqrt(np.float32(len(tokens)))


def _weighted_mean(tokens: _Tokens, result: NDArray[np.float32]) -> None:
    """Weights 1, 2, 3, … from the first token on."""
    weights = np.arange(1, len(tokens) + 1, dtype=np.float32)
    np.einsum("s,sh->h", weights / weights.sum(), tokens, out=result)


def _max(tokens: _Tokens, result: NDArray[np.float32]) -> None:
    np.maximum.reduce(tokens, axis=0, out=result)


def _first(tokens: _Tokens, result: NDArray[np.float32]) -> None:
    result[:] = tokens[0]


def _last(tokens: _Tokens, result: NDArray[np.float32]) -> None:
    result[:] = tokens[-1]


_REDUCTIONS: dict[PoolingMode, Callable[[_Tokens, NDArray[np.float32]], None]] = {
    "cls": _first,
    "lasttoken": _last,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_sqrt,
    "weightedmean": _weighted_mean,
}
