"""Messages and raw arrays on a byte stream.

A frame is a fixed header (length of the message, length of the arrays), the message in MessagePack, and the arrays'
bytes, each padded to 8 bytes so that they can be used where they were received. Nothing is pickled.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import WorkerError
from pinstripe.pool.messages import ArrayHeader

__all__ = ["FrameReader", "array_headers", "encode_frame"]

_HEADER: Final = struct.Struct("<IQ")
_ALIGNMENT: Final = 8
_MAX_MESSAGE_BYTES: Final = 16 << 20
_MAX_ARRAY_BYTES: Final = 16 << 30
_DTYPES: Final = frozenset({"<f4", "<f8", "<i4", "<i8", "|b1", "|i1", "|u1", "<u4"})

_encode_message: Final = msgspec.msgpack.Encoder().encode

M = TypeVar("M")


def array_headers(arrays: Mapping[str, NDArray[Any]]) -> tuple[ArrayHeader, ...]:
    """Describe arrays for the message that precedes them."""
    return tuple(ArrayHeader(name, array.dtype.str, array.shape) for name, array in arrays.items())


def encode_frame(message: msgspec.Struct, arrays: Mapping[str, NDArray[Any]] | None = None) -> list[bytes | memoryview]:
    """Return the buffers of one frame, in order; arrays are not copied if they are contiguous.

    Args:
        message: Any of the message types; it describes `arrays` by `array_headers`.
        arrays: Arrays of the types that numpy writes as one of `_DTYPES`.
    """
    body = _encode_message(message)
    payload: list[bytes | memoryview] = []
    size = 0
    for array in (arrays or {}).values():
        contiguous = np.ascontiguousarray(array)
        payload.append(contiguous.reshape(-1).view(np.uint8).data)
        padding = -contiguous.nbytes % _ALIGNMENT
        if padding:
            payload.append(bytes(padding))
        size += contiguous.nbytes + padding
    return [_HEADER.pack(len(body), size) + body, *payload]


class FrameReader(Generic[M]):
    """Cuts a byte stream into frames."""

    def __init__(self, message_type: Any) -> None:
        """Read messages of `message_type`, a union of tagged structs."""
        self._decoder = msgspec.msgpack.Decoder(message_type)
        self._pending = bytearray()
        self._needed = _HEADER.size

    def feed(self, data: bytes | memoryview) -> Iterator[tuple[M, dict[str, NDArray[Any]]]]:
        """Take in received bytes and yield each frame that is now whole.

        Raises:
            WorkerError: The bytes are not a valid frame; the stream cannot be used any further.
        """
        self._pending += data
        while len(self._pending) >= self._needed:
            message_bytes, array_bytes = _HEADER.unpack_from(self._pending)
            if message_bytes > _MAX_MESSAGE_BYTES or array_bytes > _MAX_ARRAY_BYTES:
                raise WorkerError(f"a frame claims {message_bytes} + {array_bytes} bytes, beyond what is allowed")
            self._needed = _HEADER.size + message_bytes + array_bytes
            if len(self._pending) < self._needed:
                return
            frame = self._pending[: self._needed]
            del self._pending[: self._needed]
            self._needed = _HEADER.size
            yield self._decode(frame, message_bytes)

    def _decode(self, frame: bytearray, message_bytes: int) -> tuple[M, dict[str, NDArray[Any]]]:
        view = memoryview(frame)
        body_end = _HEADER.size + message_bytes
        try:
            message = self._decoder.decode(view[_HEADER.size : body_end])
            arrays = _split(view[body_end:], getattr(message, "arrays", ()))
        except (msgspec.DecodeError, ValueError, TypeError, OverflowError) as error:
            raise WorkerError(f"a frame cannot be read: {error}; are both sides of one pinstripe version?") from error
        return message, arrays


def _split(payload: memoryview, headers: tuple[ArrayHeader, ...]) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    offset = 0
    for header in headers:
        if header.dtype not in _DTYPES or min(header.shape, default=0) < 0:
            raise ValueError(f"array {header.name} is {header.dtype} of shape {header.shape}")
        dtype = np.dtype(header.dtype)
        count = 1
        for extent in header.shape:
            count *= extent
        arrays[header.name] = np.frombuffer(payload, dtype, count, offset).reshape(header.shape)
        size = count * dtype.itemsize
        offset += size + -size % _ALIGNMENT
    return arrays
