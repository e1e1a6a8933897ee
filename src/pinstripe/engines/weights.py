"""Element types of the weights in a graph's file, read without the library that made it."""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pinstripe.errors import EngineError

__all__ = ["check_float32_weights", "weight_types"]

# TensorProto.DataType in onnx.proto. Indices and masks (integers of 32 bits and more, booleans) are no weights.
_ONNX_TYPES: Final = {
    1: "float32", 2: "uint8", 3: "int8", 10: "float16", 11: "float64", 16: "bfloat16", 17: "float8", 18: "float8",
    19: "float8", 20: "float8", 21: "uint4", 22: "int4", 23: "float4", 25: "uint2", 26: "int2",
}  # fmt: skip
# ov::element::Type names in OpenVINO's IR, again without indices and masks.
_OPENVINO_TYPES: Final = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "u8": "uint8",
    "i4": "int4", "u4": "uint4", "nf4": "nf4", "f8e4m3": "float8", "f8e5m2": "float8", "f4e2m1": "float4",
}  # fmt: skip
_CONSTANT: Final = re.compile(rb'<data element_type="(\w+)" shape="\s*\d+\s*,[\d,\s]*"')
_BITS_OF_DIGIT: Final = 7
_VARINT_BITS: Final = 64


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
            with path.open("rb") as file:
                # The map ends with the last view of it, which an error may hold on to: closing it here could fail.
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return frozenset(_onnx_types(content))
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


def _onnx_types(model: memoryview) -> Iterator[str]:
    """Yield the types of `ModelProto.graph.initializer`."""
    for graph in _messages(model, 7):
        for initializer in _messages(graph, 5):
            rank, type_id = _shape_and_type(initializer)
            if rank > 1 and type_id in _ONNX_TYPES:
                yield _ONNX_TYPES[type_id]


def _shape_and_type(tensor: memoryview) -> tuple[int, int]:
    """Return the number of `TensorProto.dims` (field 1, packed or not) and `data_type` (field 2)."""
    rank, type_id = 0, 0
    for number, value in _fields(tensor):
        if number == 1:
            rank += 1 if isinstance(value, int) else sum(byte < 1 << _BITS_OF_DIGIT for byte in value)
        elif number == 2 and isinstance(value, int):  # noqa: PLR2004 - the field's number, named above
            type_id = value
    return rank, type_id


def _messages(message: memoryview, number: int) -> Iterator[memoryview]:
    for found, value in _fields(message):
        if found == number and isinstance(value, memoryview):
            yield value


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield (field number, value) of a protocol buffer (its encoding guide, "Message Structure")."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        match tag & 7:
            case 0:
                value, position = _varint(message, position)
                yield tag >> 3, value
            case 2:
                size, position = _varint(message, position)
                if position + size > len(message):
                    raise ValueError("it is truncated")
                yield tag >> 3, message[position : position + size]
                position += size
            case 1 | 5 as wire_type:
                position += 8 if wire_type == 1 else 4
            case _:
                raise ValueError("it is no protocol buffer")


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := message[position]) >> _BITS_OF_DIGIT:
        value |= (byte & 127) << shift
        shift += _BITS_OF_DIGIT
        position += 1
        if shift >= _VARINT_BITS:
            raise ValueError("it is no protocol buffer")
    return value | byte << shift, position + 1
