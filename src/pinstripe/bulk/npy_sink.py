"""Results as a numpy array."""

import io
from pathlib import Path

import numpy as np
from numpy.lib import format as npy_format

from pinstripe.bulk.row_file import RowFile
from pinstripe.bulk.rows import Rows
from pinstripe.models import Task

__all__ = ["NpySink"]

_ITEM_BYTES = 4


class NpySink:
    """One float32 array [texts, width]; [texts] for reranking, which has one score a text."""

    def __init__(self, directory: Path, task: Task) -> None:
        """Go on with what is in the directory."""
        self._task = task
        self._file = RowFile(directory / "rows.npy")

    def cut(self, size: int) -> None:
        """See `Sink.cut`."""
        self._file.cut(size)

    def append(self, rows: Rows) -> int:
        """See `Sink.append`."""
        vectors = np.ascontiguousarray(rows.vectors, dtype="<f4")
        if self._file.size == 0:
            self._file.append(_header((0, vectors.shape[1])))
        return self._file.append(vectors.data.cast("B"))

    def finish(self) -> Path:
        """See `Sink.finish`."""
        content = self._file.size
        with self._file.path.open("rb") as file:
            npy_format.read_magic(file)
            shape, _, _ = npy_format.read_array_header_1_0(file)
            width = shape[1] if len(shape) > 1 else 1  # finished once already, before the file was moved
            rows = (content - file.tell()) // (width * _ITEM_BYTES)
        # Numpy pads a header so that it can be written anew when the first axis has grown.
        self._file.overwrite(_header((rows,) if self._task == "reranking" else (rows, width)))
        return self._file.path

    def close(self) -> None:
        """See `Sink.close`."""
        self._file.close()


def _header(shape: tuple[int, ...]) -> bytes:
    header = io.BytesIO()
    npy_format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return header.getvalue()
