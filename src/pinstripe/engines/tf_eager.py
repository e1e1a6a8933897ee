"""TensorFlow in eager mode, one operation at a time: what the graph modes are compared with, never the fastest."""

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

__all__ = ["TfEager"]


class TfEager:
    """Keras on TensorFlow, not compiled."""

    name: ClassVar[str] = "tf-eager"
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
        return load_keras(self, request, checked_options(self, request, KerasOptions), _EagerCall)


class _EagerCall:
    def __init__(self, tensorflow: Any, model: Any, network: Network) -> None:
        del tensorflow, network
        self._model = model

    def __call__(self, inputs: dict[str, NDArray[np.int32]]) -> NDArray[np.float32]:
        result: NDArray[np.float32] = self._model(inputs, training=False).numpy()
        return result

    def settings(self) -> dict[str, str]:
        return {}
