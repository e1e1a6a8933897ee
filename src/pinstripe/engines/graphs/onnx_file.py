"""The parts of an ONNX file that matter here, read without the onnx library (onnx.proto: the numbers of its fields)."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["OnnxNode", "OnnxTensor", "read_nodes", "read_tensors"]

_BITS_OF_DIGIT: Final = 7
_VARINT_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class OnnxTensor:
    """A `TensorProto` among the graph's initializers.

    Attributes:
        name: Its name.
        rank: Number of its dimensions.
        data_type: Number of its type (`TensorProto.DataType`).
        location: File of its values, relative to the model's; None where they are inside.
    """

    name: str
    rank: int
    data_type: int
    location: str | None


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A `NodeProto` of the graph.

    Attributes:
        operator: Such as `MatMul`.
        inputs: Names of its inputs.
        outputs: Names of its outputs.
        integers: Its attributes that are whole numbers; those of 0 may be absent.
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    integers: dict[str, int]


def read_tensors(path: Path) -> Iterator[OnnxTensor]:
    """Yield `ModelProto.graph.initializer`; values are not read.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no protocol buffer (also IndexError).
    """
    for graph in _messages(_mapped(path), 7):
        for initializer in _messages(graph, 5):
            yield _tensor(initializer)


def read_nodes(path: Path) -> Iterator[OnnxNode]:
    """Yield `ModelProto.graph.node`; those of subgraphs are left out.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no protocol buffer (also IndexError).
    """
    for graph in _messages(_mapped(path), 7):
        for node in _messages(graph, 1):
            yield _node(node)


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        # The map ends with the last view of it, which an error may hold on to: closing it here could fail.
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _node(node: memoryview) -> OnnxNode:
    """Return what the fields input (1), output (2), op_type (4) and attribute (5: name 1, i 3) say."""
    inputs, outputs, operators = ([_text(name) for name in _messages(node, number)] for number in (1, 2, 4))
    integers = {}
    for attribute in _messages(node, 5):
        fields = dict(_fields(attribute))
        if isinstance(value := fields.get(3), int):
            integers[_text(b"".join(_messages(attribute, 1)))] = value
    return OnnxNode("".join(operators), tuple(inputs), tuple(outputs), integers)


def _tensor(tensor: memoryview) -> OnnxTensor:
    """Return what the fields dims (1, packed or not), data_type (2), name (8) and external_data (13) say."""
    rank, data_type, name, location = 0, 0, "", None
    for number, value in _fields(tensor):
        match number, value:
            case 1, int():
                rank += 1
            case 1, memoryview():
                rank += sum(byte < 1 << _BITS_OF_DIGIT for byte in value)
            case 2, int():
                data_type = value
            case 8, memoryview():
                name = _text(value)
            case 13, memoryview():
                key, content = (_text(b"".join(_messages(value, field))) for field in (1, 2))
                location = content if key == "location" else location
    return OnnxTensor(name, rank, data_type, location)


def _text(content: memoryview | bytes) -> str:
    return bytes(content).decode(errors="replace")


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
