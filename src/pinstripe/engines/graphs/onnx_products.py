"""In what do the operators of ONNX Runtime's optimized graph compute their products with weights?"""

from pathlib import Path
from typing import Final

from pinstripe.engines.graphs.onnx_file import OnnxNode, read_nodes, read_tensors
from pinstripe.engines.graphs.products import Products
from pinstripe.engines.graphs.weights import ONNX_TYPES
from pinstripe.errors import EngineError

__all__ = ["read_onnx_products"]

_PRODUCTS: Final = ("MatMul", "Gemm", "Attention", "Conv")
"""Parts of the names of operators that multiply by a matrix, fused ones too (ONNX Runtime's ContribOperators.md)."""
_BY_BLOCKS: Final = "MatMulNBits"
"""Keeps weights of 2 to 8 bits in bytes; at accuracy level 4 it rounds activations to int8, else it widens weights."""
_INT8_LEVEL: Final = 4


def read_onnx_products(path: Path) -> Products:
    """Return the products of a graph that ONNX Runtime has optimized and saved.

    A weight reaches its product as it is stored, or widened by an operator of its own: a product in float32 then.

    Args:
        path: The `.onnx` file; its subgraphs are left out.

    Raises:
        EngineError: The file is damaged.
    """
    try:
        return _products(path)
    except (OSError, ValueError, IndexError) as error:
        raise EngineError(f"{path} is damaged: {error}; delete that directory, and it will be made again") from error


def _products(path: Path) -> Products:
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
            products[_precision(node, types[0])] += 1
    return products


def _precision(node: OnnxNode, weights: str) -> str:
    if node.operator != _BY_BLOCKS:
        return "int8" if weights == "uint8" else weights  # the kernels take unsigned ones, too
    if (bits := node.integers.get("bits", 4)) != 8:  # noqa: PLR2004 - bits of an int8
        return f"int{bits}"
    return "int8" if node.integers.get("accuracy_level") == _INT8_LEVEL else "float32"
