"""A model as an ONNX graph."""

from pathlib import Path
from typing import Final

from pinstripe.engines.exporting.position_buckets import bucket_tables
from pinstripe.engines.exporting.traceable import import_torch, make_traceable
from pinstripe.engines.importing import import_library
from pinstripe.models import Network

__all__ = ["write_onnx"]

_OPSET: Final = 17
"""The first with a LayerNormalization operator."""


def write_onnx(network: Network, path: Path) -> None:
    """Write the float32 graph for the network's task, with dynamic batch and sequence.

    Raises:
        EngineError: A library is missing, or the network cannot be loaded.
        OSError: The file cannot be written.
    """
    torch = import_torch()
    import_library("onnx", extra="export")
    traceable = make_traceable(network)
    axes = {name: {0: "batch", 1: "sequence"} for name in (*traceable.example, *traceable.outputs)}
    if network.one_result_a_text:
        axes["logits"] = {0: "batch"}
    with torch.inference_mode(), bucket_tables(network, traceable):
        # The tracing exporter: its graphs ran 10 to 15 % faster in onnxruntime 1.32 than those of the newer one
        # (MiniLM, one thread, 1x128 and 8x32 tokens), since more of their nodes are fused. Above 2 GB it writes the
        # weights to files of their own.
        torch.onnx.export(
            traceable.module,
            tuple(traceable.example.values()),
            str(path),
            input_names=list(traceable.example),
            output_names=list(traceable.outputs),
            dynamic_axes=axes,
            opset_version=_OPSET,
            dynamo=False,
        )
