"""TensorFlow's graph compiled by XLA, which compiles anew for each shape (batch, sequence) that comes."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.keras.model import KerasModel, KerasOptions, load_keras
from pinstripe.engines.keras.runtime import DISTRIBUTIONS, EXTRA
from pinstripe.engines.options import checked_options
from pinstripe.engines.protocol import ArtefactFormat, Compiling, LoadRequest, Precision, Threading
from pinstripe.engines.tf_graph import GraphCall
from pinstripe.models import Network

__all__ = ["TfXla", "XlaOptions", "rounded_up"]

_SHORTEST: Final = 16
"""Tokens to which shorter texts are padded: compiling for each of these lengths would cost more than it saves."""


class XlaOptions(KerasOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the engine.

    Attributes:
        shapes: What is compiled for. `rounded`: both sides of a batch are padded to the next of 1, 2, 3, 4, 6, 8, 12,
            16, 24, … (at least 16 tokens), so that few shapes occur: up to 512 tokens and 64 texts, 132. `exact`: every
            shape as it comes, without limit; for measuring at fixed shapes.
    """

    shapes: Literal["rounded", "exact"] = "rounded"


class TfXla:
    """Keras on TensorFlow, compiled by XLA."""

    name: ClassVar[str] = "tf-xla"
    format: ClassVar[ArtefactFormat] = "safetensors"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32",)
    distributions: ClassVar[tuple[str, ...]] = DISTRIBUTIONS
    also_needs: ClassVar[Mapping[Precision, str]] = {}
    extra: ClassVar[str] = EXTRA
    options_type: ClassVar[type[msgspec.Struct]] = XlaOptions
    threading: ClassVar[Threading] = "own"
    compiles: ClassVar[Compiling] = "shapes"

    def load(self, request: LoadRequest) -> KerasModel:
        """Load a network; see `Engine.load` and `XlaOptions`. Each new shape takes seconds to compile."""
        options = checked_options(self, request, XlaOptions)
        rounded = options.shapes == "rounded"
        return load_keras(
            self,
            request,
            options,
            lambda tensorflow, model, network: _XlaCall(tensorflow, model, network, rounded=rounded),
        )


class _XlaCall:
    def __init__(self, tensorflow: Any, model: Any, network: Network, *, rounded: bool) -> None:
        self._graph = GraphCall(tensorflow, model, network, compiled=True)
        self._network = network
        self._rounded = rounded
        self._shapes: set[tuple[int, ...]] = set()

    def __call__(self, inputs: dict[str, NDArray[np.int32]]) -> NDArray[np.float32]:
        size, length = inputs["ids"].shape
        if self._rounded:
            rows, columns = rounded_up(size), min(self._network.positions, max(_SHORTEST, rounded_up(length)))
            # What is added has the mask 0; its ids and positions only have to be in range.
            inputs = {name: np.pad(array, ((0, rows - size), (0, columns - length))) for name, array in inputs.items()}
        self._shapes.add(inputs["ids"].shape)
        result = self._graph(inputs)
        return result[:size] if self._network.one_result_a_text else result[:size, :length]

    def settings(self) -> dict[str, str]:
        return {**self._graph.settings(), "compiled_shapes": str(len(self._shapes))}


def rounded_up(number: int) -> int:
    """Return the least of 1, 2, 3, 4, 6, 8, 12, … (2**k and 3 * 2**k) that is not below a number of 1 or more."""
    power = 1 << (number - 1).bit_length()
    return three if number <= (three := power * 3 // 4) else power
