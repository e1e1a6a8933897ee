"""Files that results are collected in, one kind for each format of the output."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from pinstripe.bulk.jsonl_sink import JsonlSink
from pinstripe.bulk.npy_sink import NpySink
from pinstripe.bulk.parquet_sink import ParquetSink
from pinstripe.bulk.rows import Rows
from pinstripe.errors import UsageError
from pinstripe.models import Task

__all__ = ["FORMATS", "Sink", "check_format", "check_task", "open_sink"]


class Sink(Protocol):
    """Rows collected in a directory of unfinished work. All methods raise OSError where the disk does."""

    def cut(self, size: int) -> None:
        """Drop what was written beyond a size that `append` returned; 0 for everything.

        Raises:
            EOFError: There is less than that.
        """
        ...

    def append(self, rows: Rows) -> int:
        """Add rows; they are on the disk when this returns. Return the size now."""
        ...

    def finish(self) -> Path:
        """Return a file that is whole, on the disk, and ready to be moved to its place."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


FORMATS: Final[dict[str, Callable[[Path, Task], Sink]]] = {
    ".jsonl": JsonlSink,
    ".npy": NpySink,
    ".parquet": ParquetSink,
}
_WITH_ONE_WIDTH: Final = frozenset({"embedding", "classification", "reranking"})


def check_format(output: Path) -> None:
    """Raise if the output's format is unknown, or needs a library that is missing.

    Raises:
        UsageError: It is.
    """
    if output.suffix not in FORMATS:
        raise UsageError(f"the format of {output} is not known by its name; use one of {', '.join(FORMATS)}")
    if output.suffix == ".parquet":
        ParquetSink.check_installed()


def check_task(output: Path, task: Task) -> None:
    """Raise if the output's format is not for a task's results.

    Raises:
        UsageError: It is not.
    """
    if output.suffix == ".npy" and task not in _WITH_ONE_WIDTH:
        raise UsageError(f"results of {task} have no fixed width, as .npy needs; use .jsonl or .parquet")


def open_sink(output: Path, directory: Path, task: Task) -> Sink:
    """Return the sink for an output, with what the directory of unfinished work already holds."""
    return FORMATS[output.suffix](directory, task)
