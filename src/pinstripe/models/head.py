"""What is made of a network's output, in the worker: vectors, scores, spans, fillings."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import ModelError
from pinstripe.models.activation import activate, softmax
from pinstripe.models.network import Activation, Dense, Network
from pinstripe.models.pooling import pool
from pinstripe.models.tokens import TokenBatch
from pinstripe.models.weights import read_tensor

__all__ = ["Head", "make_head"]

Results: TypeAlias = dict[str, NDArray[Any]]
Head: TypeAlias = Callable[[NDArray[np.float32], TokenBatch], Results]
"""Takes a network's output (see `LoadedModel.forward`) and the batch that it is of; returns arrays by name."""

_FILLINGS = 5
"""Candidates for each mask token, as many as the fill-mask pipeline of transformers gives."""
_LEAST_NORM = np.float32(1e-12)
"""Of torch.nn.functional.normalize, by which sentence-transformers normalizes."""


def make_head(network: Network) -> Head:
    """Return the function from the network's output to results; dense weights are read here, once.

    By task, with B texts of at most S tokens and L labels, all float32 unless said:

    * embedding: `embedding` [B, D], D = `dimensions`, else the last dense layer's width, else hidden_size
      times the pooling modes.
    * classification, reranking: `scores` [B, L], the activation applied.
    * token-classification: `scores` [B, S, L], softmax over the labels; 0 at padding.
    * question-answering: `start` and `end` [B, S] logits; minus infinity at padding.
    * fill-mask: for the M mask tokens of the batch, in order, `row` and `position` int32 [M], `token_ids` int32 [M, 5]
      and `scores` [M, 5], best first, softmax over the vocabulary.

    Raises:
        ModelError: A dense layer's weights cannot be read, or a fill-mask model has no mask token.
    """
    match network.task:
        case "embedding":
            layers = tuple(_Layer(dense) for dense in network.dense)
            return partial(_embed, network, layers)
        case "classification" | "reranking":
            return partial(_classify, network.activation)
        case "token-classification":
            return _classify_tokens
        case "question-answering":
            return _answer
        case "fill-mask":
            if network.mask_token_id is None:
                raise ModelError(f"{network.name} has no mask token in its tokenizer files; choose another task")
            return partial(_fill, network.mask_token_id)


class _Layer:
    """A dense layer in memory."""

    def __init__(self, dense: Dense) -> None:
        path = Path(dense.weights)
        self._weight = read_tensor(path, "linear.weight")
        self._bias = read_tensor(path, "linear.bias") if dense.bias else None
        self._activation = dense.activation

    def __call__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return [batch, out] for [batch, in]."""
        result = vectors @ self._weight.T
        if self._bias is not None:
            result += self._bias
        return activate(result, self._activation)


def _embed(network: Network, layers: tuple[_Layer, ...], output: NDArray[np.float32], batch: TokenBatch) -> Results:
    vectors = pool(output, batch, network.pooling)
    for layer in layers:
        vectors = layer(vectors)
    if network.normalize:
        _normalize(vectors)
    if network.dimensions is not None:
        vectors = np.ascontiguousarray(vectors[:, : network.dimensions])
    if network.normalize_last:
        _normalize(vectors)
    return {"embedding": vectors}


def _normalize(vectors: NDArray[np.float32]) -> None:
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _LEAST_NORM)


def _classify(activation: Activation, output: NDArray[np.float32], _: TokenBatch) -> Results:
    return {"scores": activate(output, activation)}


def _classify_tokens(output: NDArray[np.float32], batch: TokenBatch) -> Results:
    if not batch.padded:
        return {"scores": softmax(output)}
    real = batch.attention_mask().astype(np.bool_)
    scores = np.zeros_like(output)
    scores[real] = softmax(output[real])
    return {"scores": scores}


def _answer(output: NDArray[np.float32], batch: TokenBatch) -> Results:
    real = batch.attention_mask().astype(np.bool_)
    never = np.float32(-np.inf)
    return {"start": np.where(real, output[:, :, 0], never), "end": np.where(real, output[:, :, 1], never)}


def _fill(mask_token_id: int, output: NDArray[np.float32], batch: TokenBatch) -> Results:
    rows, positions = np.nonzero((batch.ids == mask_token_id) & batch.attention_mask().astype(np.bool_))
    shares = softmax(output[rows, positions])
    kept = min(_FILLINGS, shares.shape[1])
    best = np.argpartition(shares, -kept, axis=1)[:, -kept:]
    order = np.argsort(-np.take_along_axis(shares, best, axis=1), axis=1, kind="stable")
    token_ids = np.take_along_axis(best, order, axis=1)
    return {
        "row": rows.astype(np.int32),
        "position": positions.astype(np.int32),
        "token_ids": token_ids.astype(np.int32),
        "scores": np.take_along_axis(shares, token_ids, axis=1),
    }
