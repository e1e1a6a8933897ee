"""A float32 ONNX graph as an int8 one."""

from pathlib import Path
from typing import Any

from pinstripe.engines.importing import import_library

__all__ = ["write_int8_onnx"]

_LARGEST_FILE_BYTES = 2**31 - 2**20
"""A protocol buffer has less than 2 GiB; weights of larger models go to a file of their own."""


def write_int8_onnx(source: Path, target: Path) -> None:
    """Quantize the weights of matrix products by output channel; activations are quantized as they come.

    Weights become signed, since unsigned ones were 1.8 times slower, and symmetric. Products of two activations
    (attention) and embeddings stay float32 (see docs/decisions/013).

    Raises:
        EngineError: A library is missing.
        OSError: The file cannot be written.
    """
    onnx = import_library("onnx", extra="export")
    quantization = import_library("onnxruntime.quantization", extra="onnxruntime")
    model = onnx.load(source)
    _take_shared_weights_directly(model.graph)
    quantization.quantize_dynamic(
        model,
        target,
        op_types_to_quantize=["MatMul"],  # into which those of type Gemm are turned before
        per_channel=True,
        weight_type=quantization.QuantType.QInt8,
        use_external_data_format=model.ByteSize() > _LARGEST_FILE_BYTES,
        extra_options={"MatMulConstBOnly": True},
    )


def _take_shared_weights_directly(graph: Any) -> None:
    """Let every product name its weight: for one that layers share, the exporter puts an Identity between.

    The quantizer takes what comes out of a node for an activation, and left all layers of ALBERT but one in float32.
    """
    weights = {tensor.name for tensor in graph.initializer}
    names = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}
    names = {output: given for output, given in names.items() if given in weights}
    for node in graph.node:
        for number, name in enumerate(node.input):
            node.input[number] = names.get(name, name)
    for node in [node for node in graph.node if node.output[0] in names]:
        graph.node.remove(node)
