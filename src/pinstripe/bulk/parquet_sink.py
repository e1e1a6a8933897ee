"""Results as a Parquet file."""

import importlib
import os
from pathlib import Path
from types import GenericAlias
from typing import Any, Final, get_args, get_origin

import msgspec

from pinstripe.bulk.rows import Rows
from pinstripe.errors import UsageError
from pinstripe.models import Classification, Filling, Span, Task, TokenClassification

__all__ = ["ParquetSink"]

_RESULTS: Final[dict[Task, Any]] = {
    "classification": Classification,
    "fill-mask": tuple[Filling, ...],
    "question-answering": Span,
    "reranking": float,
    "token-classification": TokenClassification,
}


class ParquetSink:
    """Columns `line`, `id`, and `embedding` (a list of float32 of fixed size) or, for other tasks, `result`.

    A Parquet file can be read only when it is whole, so each append makes a small one, and `finish` joins them.
    """

    def __init__(self, directory: Path, task: Task) -> None:
        """Go on with what is in the directory."""
        self._directory = directory
        self._task = task
        self._parts = 0

    @staticmethod
    def check_installed() -> None:
        """Raise if the library is missing.

        Raises:
            UsageError: It is.
        """
        _arrow()

    def cut(self, size: int) -> None:
        """See `Sink.cut`; the size is the number of parts."""
        for part in self._directory.glob("part-*.parquet"):
            number = part.stem.removeprefix("part-")
            if number.isdecimal() and int(number) >= size:
                part.unlink()
        if not all(self._part(number).exists() for number in range(size)):
            raise EOFError(self._directory)
        self._parts = size

    def append(self, rows: Rows) -> int:
        """See `Sink.append`."""
        arrow, parquet = _arrow()
        name, column = self._column(rows)
        table = arrow.table(
            {
                "line": arrow.array(rows.lines, arrow.int64()),
                "id": arrow.array([None if one is None else str(one) for one in rows.ids], arrow.string()),
                name: column,
            }
        )
        parquet.write_table(table, self._part(self._parts))
        _sync(self._part(self._parts))
        self._parts += 1
        return self._parts

    def finish(self) -> Path:
        """See `Sink.finish`."""
        _, parquet = _arrow()
        whole = self._directory / "whole.parquet"
        with parquet.ParquetWriter(whole, parquet.read_schema(self._part(0))) as writer:
            for number in range(self._parts):
                writer.write_table(parquet.read_table(self._part(number)))
        _sync(whole)
        return whole

    def close(self) -> None:
        """See `Sink.close`; nothing stays open."""

    def _part(self, number: int) -> Path:
        return self._directory / f"part-{number}.parquet"

    def _column(self, rows: Rows) -> tuple[str, Any]:
        arrow, _ = _arrow()
        if rows.vectors is None:
            return "result", arrow.array(
                [msgspec.to_builtins(one) for one in rows.answers], _type(_RESULTS[self._task])
            )
        values = arrow.array(rows.vectors.reshape(-1), arrow.float32())
        return "embedding", arrow.FixedSizeListArray.from_arrays(values, rows.vectors.shape[1])


def _arrow() -> tuple[Any, Any]:
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError("writing .parquet needs pyarrow; pip install 'pinstripe[parquet]', or write .jsonl") from error
    return arrow, parquet


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _type(annotation: Any) -> Any:
    """Return Arrow's type for the annotation of a field of a result."""
    arrow, _ = _arrow()
    if isinstance(annotation, GenericAlias):
        if get_origin(annotation) is dict:
            return arrow.map_(arrow.string(), _type(get_args(annotation)[1]))
        return arrow.list_(_type(get_args(annotation)[0]))
    if issubclass(annotation, msgspec.Struct):
        fields = msgspec.structs.fields(annotation)
        return arrow.struct([(field.name, _type(field.type)) for field in fields])
    return {str: arrow.string(), int: arrow.int64(), float: arrow.float32()}[annotation]
