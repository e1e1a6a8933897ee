"""TensorFlow's graph mode: `tf.function`, traced once for all shapes."""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.keras.model import KerasModel, KerasOptions, load_keras
from pinstripe.engines.keras.runtime import DISTRIBUTIONS, EXTRA
from pinstripe.engines.options import checked_options
from pinstripe.engines.protocol import ArtefactFormat, Compiling, LoadRequest, Precision, Threading
from pinstripe.models import Network

__all__ = ["GraphCall", "TfGraph"]


class TfGraph:
    """Keras on TensorFlow, as a graph."""

    name: ClassVar[str] = "tf-graph"
    format: ClassVar[ArtefactFormat] = "safetensors"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32",)
    distributions: ClassVar[tuple[str, ...]] = DISTRIBUTIONS
    also_needs: ClassVar[Mapping[Precision, str]] = {}
    extra: ClassVar[str] = EXTRA
    options_type: ClassVar[type[msgspec.Struct]] = KerasOptions
    threading: ClassVar[Threading] = "own"
    compiles: ClassVar[Compiling] = "never"

    def load(self, request: LoadRequest) -> KerasModel:
        """Load a network; see `Engine.load` and `KerasOptions`."""
        return load_keras(self, request, checked_options(self, request, KerasOptions), GraphCall)


class GraphCall:
    """Calls a model through a function that is traced once."""

    def __init__(self, tensorflow: Any, model: Any, network: Network, *, compiled: bool = False) -> None:
        """Make the function; it is traced by the first call.

        Args:
            tensorflow: The module.
            model: A Keras model of named int32 [batch, sequence] inputs.
            network: What it computes.
            compiled: Whether XLA compiles the graph, once for each shape that comes.
        """
        del network
        signature = {name: tensorflow.TensorSpec((None, None), tensorflow.int32, name) for name in model.input}
        self._function = tensorflow.function(
            lambda inputs: model(inputs, training=False), input_signature=[signature], jit_compile=compiled
        )

    def __call__(self, inputs: dict[str, NDArray[np.int32]]) -> NDArray[np.float32]:
        """See `Call`."""
        result: NDArray[np.float32] = self._function(inputs).numpy()
        return result

    def settings(self) -> dict[str, str]:
        """Return how often the function has been traced."""
        return {"traces": str(self._function.experimental_get_tracing_count())}
