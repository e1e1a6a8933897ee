"""In what do the operators of ONNX Runtime's optimized graph compute their products with weights?"""

from pathlib import Path
from typing import Final

from pinstripe.engines.onnx_file import read_nodes, read_tensors
from pinstripe.engines.products import Products
from pinstripe.engines.weights import ONNX_TYPES

__all__ = ["read_onnx_products"]

_PRODUCTS: Final = ("MatMul", "Gemm", "Attention", "Conv")
"""Parts of the names of operators that multiply by a matrix, fused ones too (ONNX Runtime's ContribOperators.md)."""
_PRECISIONS: Final = {"uint8": "int8"}
"""By the type of the weights, where they are named differently: the kernels take signed and unsigned ones."""


def read_onnx_products(path: Path) -> Products:
    """Return the products of a graph that ONNX Runtime has optimized and saved.

    A weight reaches its product as it is stored, or widened by an operator of its own: a product in float32 then.

    Args:
        path: The `.onnx` file; its subgraphs are left out.
    """
    weights = {
        tensor.name: ONNX_TYPES[tensor.data_type]
        for tensor in read_tensors(path)
        if tensor.rank > 1 and tensor.data_type in ONNX_TYPES
    }
    products = Products()
    for node in read_nodes(path):  # which are sorted: what makes an input comes before what takes it
        types = [weights[name] for name in node.inputs if name in weights]
        if types and node.operator == "DequantizeLinear":
            weights |= dict.fromkeys(node.outputs, "float32")
        elif types and any(part in node.operator for part in _PRODUCTS):
            products[_PRECISIONS.get(types[0], types[0])] += 1
    return products
