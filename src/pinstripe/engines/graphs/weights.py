"""Element types of the weights in a graph's file, and which files it consists of, without the library that made it."""

import hashlib
import re
from pathlib import Path
from typing import Final

from pinstripe.engines.graphs.onnx_file import read_tensors
from pinstripe.errors import EngineError

__all__ = ["ONNX_TYPES", "check_float32_weights", "graph_digest", "weight_types"]

# TensorProto.DataType in onnx.proto. Indices and masks (integers of 32 bits and more, booleans) are no weights.
ONNX_TYPES: Final = {
    1: "float32", 2: "uint8", 3: "int8", 10: "float16", 11: "float64", 16: "bfloat16", 17: "float8", 18: "float8",
    19: "float8", 20: "float8", 21: "uint4", 22: "int4", 23: "float4", 25: "uint2", 26: "int2",
}  # fmt: skip
# ov::element::Type names in OpenVINO's IR, again without indices and masks.
_OPENVINO_TYPES: Final = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "u8": "uint8",
    "i4": "int4", "u4": "uint4", "nf4": "nf4", "f8e4m3": "float8", "f8e5m2": "float8", "f4e2m1": "float4",
}  # fmt: skip
_CONSTANT: Final = re.compile(rb'<data element_type="(\w+)" shape="\s*\d+\s*,[\d,\s]*"')


def weight_types(path: Path) -> frozenset[str]:
    """Return the element types of all weights with two or more dimensions, such as `float32` and `int8`.

    Vectors are left out: even quantized graphs keep scales, zero points and biases in other types.

    Args:
        path: An `.onnx` file or an OpenVINO `.xml` file; external weights are not read.

    Raises:
        EngineError: The file cannot be read, or is not what its suffix says.
    """
    try:
        if path.suffix == ".onnx":
            numbers = {tensor.data_type for tensor in read_tensors(path) if tensor.rank > 1}
            return frozenset(ONNX_TYPES[number] for number in numbers if number in ONNX_TYPES)
        names = {match[1].decode() for match in _CONSTANT.finditer(path.read_bytes())}
    except (OSError, ValueError, IndexError) as error:
        raise EngineError(f"{path} cannot be read as a model: {error}; choose another file with --file") from error
    return frozenset(_OPENVINO_TYPES[name] for name in names if name in _OPENVINO_TYPES)


def check_float32_weights(path: Path, *, rounded: bool) -> frozenset[str]:
    """Refuse a file whose computation would not be float32.

    Args:
        path: As for `weight_types`.
        rounded: Whether 16-bit weights are allowed, since the library widens them to float32 when it loads them.

    Returns:
        The types of the weights.

    Raises:
        EngineError: It holds quantized weights, or 16-bit weights that are not allowed.
    """
    types = weight_types(path)
    allowed = {"float32", "float16", "bfloat16"} if rounded else {"float32"}
    if wrong := sorted(types - allowed):
        message = f"{path} has {' and '.join(wrong)} weights, which is not a float32 model"
        raise EngineError(f"{message}; choose a float32 file with --file")
    return types


def graph_digest(path: Path) -> str:
    """Return a hexadecimal digest of all files of a graph: its own, and those that hold its weights.

    Args:
        path: As for `weight_types`.

    Raises:
        EngineError: A file of it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        for part in _files(path):
            with part.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    except (OSError, ValueError, IndexError) as error:
        raise EngineError(f"{path} cannot be read as a model: {error}; choose another file with --file") from error
    return digest.hexdigest()[:32]


def _files(path: Path) -> list[Path]:
    if path.suffix == ".onnx":
        return [path, *(path.parent / name for name in sorted({t.location for t in read_tensors(path) if t.location}))]
    return [part for part in (path, path.with_suffix(".bin")) if part.is_file()]
