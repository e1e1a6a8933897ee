"""Results as JSON, a line each."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from pinstripe.bulk.row_file import RowFile
from pinstripe.bulk.rows import Rows
from pinstripe.models import Task

__all__ = ["JsonlSink"]


class JsonlSink:
    """An object for each text: `line`, `id` if the text has one, and `embedding` or, for other tasks, `result`."""

    def __init__(self, directory: Path, task: Task) -> None:
        """Go on with what is in the directory."""
        self._name = "embedding" if task == "embedding" else "result"
        self._file = RowFile(directory / "rows.jsonl")

    def cut(self, size: int) -> None:
        """See `Sink.cut`."""
        self._file.cut(size)

    def append(self, rows: Rows) -> int:
        """See `Sink.append`."""
        return self._file.append(b"".join(self._encoded(rows)))

    def finish(self) -> Path:
        """See `Sink.finish`."""
        return self._file.path

    def close(self) -> None:
        """See `Sink.close`."""
        self._file.close()

    def _encoded(self, rows: Rows) -> Iterator[bytes]:
        for line, name, result in zip(rows.lines, rows.ids, _plain(rows), strict=True):
            row = {"line": line, self._name: result} if name is None else {"line": line, "id": name, self._name: result}
            # Of the fast encoders, the one that writes float32 with as few digits as it needs.
            yield orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def _plain(rows: Rows) -> Iterable[Any]:
    return rows.vectors if rows.vectors is not None else map(msgspec.to_builtins, rows.answers)
