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

__all__ = ["largest_difference", "load_graph", "load_torch"]

_READERS: dict[GraphFormat, str] = {"onnx": "onnxruntime", "openvino": "openvino"}

_LONGEST = 512

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


def largest_difference(network: Network, one: Forward, other: Forward) -> float:
    """Return the largest difference over padded and unpadded batches, from one token to 512; NaN counts as inf."""
    worst = 0.0
    for lengths in ((1,), (40, 3, 17), (12, 12), (_LONGEST,)):  # which are cut to the model's longest
        batch = padded_batch(network, lengths)
        difference = np.abs(one(batch) - other(batch))
        if not network.one_result_a_text:
            difference = difference[batch.attention_mask() == 1]
        worst = max(worst, float(np.nan_to_num(difference, nan=math.inf).max()))
    return worst
