"""In what does OpenVINO's CPU plugin compute a compiled graph's products with weights?"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from pinstripe.engines.graphs.openvino_library import openvino_core
from pinstripe.engines.graphs.products import Products

__all__ = ["read_openvino_products"]

_PRECISIONS: Final = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "i8": "int8", "u8": "int8"}
_QUANTIZED: Final = frozenset({"i8", "u8"})
_OUTPUTS: Final = 16


def read_openvino_products(library: Any, compiled: Any, properties: Mapping[str, Any]) -> Products:
    """Return the products of a compiled graph by the precision of what is multiplied.

    OpenVINO's runtime graph tells the types of both factors. With int8 weights and activations of float32 it does not
    tell whether those are quantized as they come or the weights widened, which it decides by width (a group of
    activations must fit), precision and CPU. That is tried out on a small product.

    Args:
        library: OpenVINO.
        compiled: The compiled graph.
        properties: What it was compiled with.
    """
    products, quantizes = Products(), {}
    for node in compiled.get_runtime_model().get_ordered_ops():
        kind, inputs = _text(node, "layerType"), [port.get_source_output() for port in node.inputs()]
        if kind != "FullyConnected" and not (kind == "MatMul" and _text(inputs[1].get_node(), "layerType") == "Const"):
            continue
        activations, weights = (_text(factor.get_node(), "outputPrecisions").split(",")[0] for factor in inputs[:2])
        precision = _PRECISIONS.get(activations, activations)
        if weights in _QUANTIZED and activations not in _QUANTIZED:
            width = inputs[1].get_partial_shape()[-1].get_length()
            if width not in quantizes:
                quantizes[width] = _quantizes_activations(library, width, properties)
            precision = "int8" if quantizes[width] else precision
        products[precision] += 1
    return products


def _text(node: Any, key: str) -> str:
    return str(node.get_rt_info()[key].astype(str))


def _quantizes_activations(library: Any, width: int, properties: Mapping[str, Any]) -> bool:
    """Return whether results change with the group size: they are rounded then, and else the same."""
    random = np.random.default_rng(0)
    weights = random.integers(-127, 128, (_OUTPUTS, width)).astype(np.int8)
    activations = random.standard_normal((1, 4, width), dtype=np.float32)
    operations = library.opset13
    given = operations.parameter([-1, -1, width], np.float32)
    scale = operations.constant(np.full((_OUTPUTS, 1), 1 / 127, np.float32))
    widened = operations.multiply(operations.convert(operations.constant(weights), "f32"), scale)
    graph = library.Model([operations.matmul(given, widened, False, True)], [given])  # noqa: FBT003 - positional only
    results = []
    for group_size in (properties["DYNAMIC_QUANTIZATION_GROUP_SIZE"], 0):
        changed = {**properties, "DYNAMIC_QUANTIZATION_GROUP_SIZE": group_size}
        results.append(openvino_core().compile_model(graph, "CPU", changed)(activations)[0].copy())
    return not np.array_equal(*results)
