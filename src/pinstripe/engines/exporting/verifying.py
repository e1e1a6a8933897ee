"""Whether a graph gives what it was made of gives."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.exporting.request import GraphFormat
from pinstripe.engines.exporting.traceable import padded_batch
from pinstripe.engines.protocol import Artefact, LoadedModel, LoadRequest, Precision
from pinstripe.engines.registry import engine
from pinstripe.models import Network, TokenBatch

__all__ = ["load_graph", "load_torch", "relative_difference"]

_READERS: dict[GraphFormat, str] = {"onnx": "onnxruntime", "openvino": "openvino"}

_LONGEST = 512

_LEAST_VALUE = 1e-6
"""Below it, all values are taken for zero."""

Forward = Callable[[TokenBatch], NDArray[np.float32]]


def load_torch(network: Network) -> LoadedModel:
    """Load what a float32 graph is compared with.

    Raises:
        EngineError: See `Engine.load`.
    """
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    return engine("torch-eager").load(LoadRequest(network=network, artefact=artefact, threads=1))


def load_graph(network: Network, artefact: Artefact, graph_format: GraphFormat, precision: Precision) -> LoadedModel:
    """Load a graph with the engine that reads its format.

    Raises:
        EngineError: See `Engine.load`.
    """
    reader = engine(_READERS[graph_format])
    return reader.load(LoadRequest(network=network, artefact=artefact, precision=precision, threads=1))


def relative_difference(network: Network, one: Forward, other: Forward) -> float:
    """Return the largest difference as a share of the largest value, over padded and unpadded batches.

    From one token to 512; what is not a number counts as infinity.

    Args:
        network: The model.
        one: What is checked.
        other: What it should give.
    """
    worst = 0.0
    for lengths in ((1,), (40, 3, 17), (12, 12), (_LONGEST,)):  # which are cut to the model's longest
        batch = padded_batch(network, lengths)
        expected = other(batch)
        difference = np.abs(one(batch) - expected)
        if not network.one_result_a_text:
            real = batch.attention_mask() == 1
            difference, expected = difference[real], expected[real]
        share = float(difference.max()) / max(float(np.abs(expected).max()), _LEAST_VALUE)
        worst = max(worst, share if math.isfinite(share) else math.inf)
    return worst
