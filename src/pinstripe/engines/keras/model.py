"""A Keras model as pinstripe's loaded model; how it is called is each engine's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.keras.checkpoint import Checkpoint
from pinstripe.engines.keras.encoder import read_encoder
from pinstripe.engines.keras.network import build_network
from pinstripe.engines.keras.runtime import KerasRuntime, start_keras
from pinstripe.engines.protocol import Engine, EngineReport, LoadRequest
from pinstripe.models import Network, TokenBatch, first_position

__all__ = ["Call", "KerasModel", "KerasOptions", "load_keras"]


class KerasOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the engines on TensorFlow.

    Attributes:
        onednn: Whether oneDNN's kernels take the place of TensorFlow's own (`TF_ENABLE_ONEDNN_OPTS`).
        interop_threads: Operations that may run beside each other (`inter_op_parallelism_threads`); None for one.
    """

    onednn: bool = True
    interop_threads: int | None = None


class Call(Protocol):
    """How a Keras model is called."""

    def __call__(self, inputs: dict[str, NDArray[np.int32]]) -> NDArray[np.float32]:
        """Run it on arrays [batch, sequence]; return an array of its own."""
        ...

    def settings(self) -> dict[str, str]:
        """Return what a report should say of it."""
        ...


def load_keras(
    engine: Engine, request: LoadRequest, options: KerasOptions, call: Callable[[Any, Any, Network], Call]
) -> "KerasModel":
    """Load a network into Keras.

    Args:
        engine: Whose it is.
        request: What to load.
        options: The request's, checked as all of it.
        call: Makes the call of the model out of (tensorflow, model, network).

    Raises:
        EngineError: As `Engine.load`. A family or setting that cannot be computed is refused before anything is loaded.
    """
    network = request.network
    encoder = read_encoder(network)
    checkpoint = Checkpoint(Path(network.directory), encoder.family.prefix)
    runtime = start_keras(threads=request.threads, onednn=options.onednn, interop_threads=options.interop_threads)
    model = build_network(runtime.keras, runtime.keras_hub, network, encoder, checkpoint)
    return KerasModel(engine.name, runtime, network, model, call(runtime.tensorflow, model, network))


class KerasModel:
    """See `LoadedModel`."""

    def __init__(self, engine: str, runtime: KerasRuntime, network: Network, model: Any, call: Call) -> None:
        """Use `load_keras`."""
        self._engine = engine
        self._runtime = runtime
        self._network = network
        self._model = model
        self._call = call
        self._inputs = frozenset(model.input)

    def forward(self, batch: TokenBatch) -> NDArray[np.float32]:
        """Run the network; see `LoadedModel.forward`."""
        ids = batch.ids
        arrays = {"ids": ids, "mask": batch.attention_mask(), "positions": self._positions(ids)}
        if "types" in self._inputs:
            arrays["types"] = self._types(batch)
        return np.ascontiguousarray(
            self._call({name: np.ascontiguousarray(array, np.int32) for name, array in arrays.items()})
        )

    def report(self) -> EngineReport:
        """Return what is in effect; see `LoadedModel.report`."""
        runtime = self._runtime
        types = {str(variable.dtype) for variable in self._model.weights}
        types |= {layer.compute_dtype for layer in self._model.layers if layer.weights}
        return EngineReport(
            engine=self._engine,
            version=str(runtime.tensorflow.__version__),
            precision="+".join(sorted(types)),
            threads=runtime.threads,
            settings={
                "inter_op_parallelism_threads": str(
                    runtime.tensorflow.config.threading.get_inter_op_parallelism_threads()
                ),
                "keras": str(runtime.keras.__version__),
                "keras-hub": str(runtime.keras_hub.__version__),
                **runtime.onednn_isa,
                "onednn": "unknown" if runtime.onednn is None else str(runtime.onednn).lower(),
                **self._call.settings(),
            },
        )

    def _types(self, batch: TokenBatch) -> NDArray[Any]:
        # As transformers' encoders of one type are called: the tokenizer's types mean nothing to them.
        if batch.type_ids is None or self._network.type_vocab_size < 2:  # noqa: PLR2004 - one type
            return np.zeros_like(batch.ids)
        return batch.type_ids

    def _positions(self, ids: NDArray[np.int32]) -> NDArray[Any]:
        """Return position ids as transformers counts them."""
        first = first_position(self._network.model_type, self._network.pad_token_id)
        if not first:
            return np.broadcast_to(np.arange(ids.shape[1], dtype=np.int32), ids.shape)
        real = ids != self._network.pad_token_id
        positions: NDArray[Any] = np.cumsum(real, axis=1) * real + first - 1
        return positions
