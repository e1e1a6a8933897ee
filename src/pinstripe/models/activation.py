"""Activation functions on float32 arrays."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pinstripe.models.network import Activation

__all__ = ["activate", "softmax"]


def activate(values: NDArray[np.float32], activation: Activation) -> NDArray[np.float32]:
    """Return an activation of `values`; softmax runs over the last axis, GELU is the exact one (with erf)."""
    return _FUNCTIONS[activation](values)


def softmax(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the softmax over the last axis; never overflows."""
    shares: NDArray[np.float32] = np.exp(values - values.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def _sigmoid(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """By tanh, which does not overflow as exp(-x) does for large negative x."""
    result: NDArray[np.float32] = np.tanh(values * _HALF)
    result *= _HALF
    result += _HALF
    return result


def _gelu(values: NDArray[np.float32]) -> NDArray[np.float32]:
    share: NDArray[np.float32] = _ERF(values / np.float32(math.sqrt(2))).astype(np.float32)
    share += np.float32(1)
    return values * share * _HALF


_HALF = np.float32(0.5)
_ERF = np.frompyfunc(math.erf, 1, 1)
_FUNCTIONS: dict[Activation, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "identity": lambda values: values,
    "tanh": np.tanh,
    "gelu": _gelu,
    "relu": lambda values: np.maximum(values, np.float32(0)),
    "sigmoid": _sigmoid,
    "softmax": softmax,
}
