"""Safetensors files: where a model keeps them, whether they are whole, and single tensors out of them.

Read here by hand, so that a worker needs no library for the small weights of a head. The format is a little-endian u64
header length, a JSON header {name: {dtype, shape, data_offsets}}, then the data, without gaps
(https://huggingface.co/docs/safetensors/index#format).
"""

import os
import struct
from math import prod
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import ModelError
from pinstripe.models.files import read_json
from pinstripe.models.quoting import quoted, shortened

__all__ = ["find_weights", "no_weights", "read_tensor", "tensor_shapes"]

_PREFIX_BYTES = 8
_HEADER_LIMIT_BYTES = 100_000_000
"""The safetensors library refuses larger headers too."""
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_INDEX = "model.safetensors.index.json"


class _Entry(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def find_weights(directory: Path) -> tuple[Path, ...]:
    """Return the checked safetensors files of a model: one file, or all shards; empty if it has none.

    Raises:
        ModelError: A file is damaged or holds no tensors, a shard is missing, or the weights are a pickle only.
    """
    single = directory / "model.safetensors"
    files = (single,) if single.is_file() else _shards(directory)
    for file in files:
        if not tensor_shapes(file):
            raise ModelError(f"{file} holds no tensors; download or save the model again")
    return files


def _shards(directory: Path) -> tuple[Path, ...]:
    index = directory / _INDEX
    if not index.is_file():
        return ()
    names = sorted(set(read_json(index, _Index).weight_map.values()))
    for name in names:
        # Not pathlib's is_file(): it raises for names that no file can have.
        if Path(name).name != name or not os.path.isfile(directory / name):  # noqa: PTH113 - as said
            raise ModelError(f"{index} names the file {quoted(name)}, which is not beside it; download the model again")
    return tuple(directory / name for name in names)


def no_weights(directory: Path) -> str:
    """Return what to say of a directory in which nothing can be run."""
    pickles = sorted(path.name for pattern in _PICKLES for path in directory.glob(pattern))
    if pickles:
        return (
            f"{directory} has its weights only as a pickle ({pickles[0]}), which can run any code when it is loaded; "
            "convert it to safetensors (save_pretrained of transformers writes them)"
        )
    others = sorted(path.name for path in directory.glob("*.safetensors"))
    seen = f" ({', '.join(others)} is not a whole model)" if others else ""
    return f"{directory} has no weights{seen}; model.safetensors, an .onnx file or an OpenVINO .xml file is needed"


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor in a safetensors file, by name.

    Raises:
        ModelError: The file is damaged or cut short.
    """
    entries, _ = _read_header(path)
    return {name: entry.shape for name, entry in entries.items()}


def read_tensor(path: Path, name: str) -> NDArray[np.float32]:
    """Return one tensor as float32.

    Raises:
        ModelError: There is no such tensor, or its type is not F32, F16, BF16 or F64.
    """
    entries, start = _read_header(path)
    entry = entries.get(name)
    if entry is None:
        others = shortened(", ".join(sorted(entries)))
        raise ModelError(f"{path} has no tensor {name!r}, only {others}; save the model again")
    if entry.dtype not in {"F32", "F16", "BF16", "F64"}:
        raise ModelError(f"{path}: tensor {name!r} is {entry.dtype}; convert it to F32")
    begin, end = entry.data_offsets
    stored = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}[entry.dtype]
    with path.open("rb") as file:
        file.seek(start + begin)
        data = np.frombuffer(file.read(end - begin), dtype=stored).reshape(entry.shape)
    if entry.dtype == "BF16":  # the upper half of a float32
        return (data.astype(np.uint32) << 16).view(np.float32)
    return data.astype(np.float32)


_SIZES_BYTES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}


def _read_header(path: Path) -> tuple[dict[str, _Entry], int]:
    """Return the entries of the header and the position of the data behind it."""
    damaged = "is not a whole safetensors file"
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(_PREFIX_BYTES)
            length = struct.unpack("<Q", prefix)[0] if len(prefix) == _PREFIX_BYTES else size
            start = _PREFIX_BYTES + length
            if start > size or length > _HEADER_LIMIT_BYTES:
                raise ModelError(f"{path} {damaged} ({size} bytes, header cut short); download the model again")
            header = msgspec.json.decode(file.read(length), type=dict[str, msgspec.Raw])
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); check the file and its permissions") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"{path} {damaged} (header: {shortened(str(error))}); download the model again") from error
    try:
        entries = {
            name: msgspec.json.decode(raw, type=_Entry) for name, raw in header.items() if name != "__metadata__"
        }
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ModelError(f"{path} {damaged} (header: {shortened(str(error))}); download the model again") from error
    _check_offsets(path, entries, size - start)
    return entries, start


def _check_offsets(path: Path, entries: dict[str, _Entry], data_bytes: int) -> None:
    expected = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        begin, end = entry.data_offsets
        wide = _SIZES_BYTES.get(entry.dtype)
        if begin != expected or end < begin or (wide is not None and end - begin != wide * prod(entry.shape)):
            raise ModelError(
                f"{path}: tensor {quoted(name)} lies at bytes {begin} to {end}, which does not fit; it is damaged"
            )
        expected = end
    if expected != data_bytes:
        raise ModelError(
            f"{path} is damaged: {data_bytes} bytes of data, {expected} expected; download the model again"
        )
