"""Messages and arrays survive the byte stream, whatever pieces it comes in."""

import struct

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.errors import WorkerError
from pinstripe.pool.frames import FrameReader, array_headers, encode_frame
from pinstripe.pool.messages import BatchDone, FromWorker, Report, RunBatch, ToWorker


def _stream(sizes: list[tuple[int, int]]) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    generator = np.random.default_rng(0)
    frames, expected = b"", []
    for number, (rows, columns) in enumerate(sizes):
        arrays = {
            "ids": generator.integers(0, 100, (rows, columns), dtype=np.int32),
            "lengths": generator.integers(0, 9, rows, dtype=np.int32),
        }
        frames += b"".join(encode_frame(RunBatch(number, array_headers(arrays)), arrays))
        expected.append(arrays)
    return frames, expected


@given(
    sizes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=4),
    piece=st.integers(1, 200),
)
def test_any_cut_of_the_stream_gives_the_same_frames(sizes: list[tuple[int, int]], piece: int) -> None:
    """Frames come out whole and in order however the bytes are cut; empty arrays too."""
    stream, expected = _stream(sizes)
    reader: FrameReader[ToWorker] = FrameReader(ToWorker)
    received = [frame for start in range(0, len(stream), piece) for frame in reader.feed(stream[start : start + piece])]

    assert len(received) == len(expected)
    for number, ((message, arrays), wanted) in enumerate(zip(received, expected, strict=True)):
        assert isinstance(message, RunBatch)
        assert message.id == number
        assert all(np.array_equal(arrays[name], wanted[name]) for name in wanted)
        assert all(arrays[name].shape == wanted[name].shape for name in wanted)


def test_arrays_can_be_written_to() -> None:
    """Received arrays are the receiver's own: frameworks complain about read-only memory."""
    stream, _ = _stream([(2, 3)])
    ((_, arrays),) = FrameReader[ToWorker](ToWorker).feed(stream)

    arrays["ids"][0, 0] = 7

    assert arrays["ids"].flags.writeable


def test_array_that_is_not_contiguous_is_sent_by_value() -> None:
    """A transposed array arrives with its values in place."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3).T
    arrays = {"output": array}
    done = BatchDone(0, 1, 2, 3, array_headers(arrays))
    ((_, received),) = FrameReader[FromWorker](FromWorker).feed(b"".join(encode_frame(done, arrays)))

    assert np.array_equal(received["output"], array)


@pytest.mark.parametrize(
    "stream",
    [
        struct.pack("<IQ", 3, 0) + b"\xc1\xc1\xc1",
        struct.pack("<IQ", 1 << 31, 0),
        struct.pack("<IQ", 1, 1 << 60),
        b"".join(encode_frame(RunBatch(0, array_headers({"ids": np.zeros(4, np.complex128)})))),
        b"".join(encode_frame(RunBatch(0, array_headers({"ids": np.zeros(4, np.int32)})))),
        b"".join(encode_frame(msgspec.structs.replace(RunBatch(0, ())), {"ids": np.zeros(4, np.int32)})) + b"x" * 12,
    ],
    ids=["not a message", "message too long", "arrays too long", "unknown type", "array missing", "garbage after"],
)
def test_broken_stream_is_said_and_not_believed(stream: bytes) -> None:
    """A stream that is not ours ends in an error, never in a wrong array or in endless reading."""
    with pytest.raises(WorkerError):
        list(FrameReader[ToWorker](ToWorker).feed(stream + bytes(4)))


def test_reply_of_another_kind_is_refused() -> None:
    """What only a parent may say is not taken from a worker."""
    stream = b"".join(encode_frame(RunBatch(0, ())))
    with pytest.raises(WorkerError):
        list(FrameReader[FromWorker](FromWorker).feed(stream))
    assert Report in FromWorker.__args__  # the union is the one the pool reads
