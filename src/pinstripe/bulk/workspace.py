"""Unfinished work beside the output: what is done, so that it need not be done again."""

import fcntl
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from pinstripe.bulk.job import BulkJob
from pinstripe.bulk.journal import Checkpoint, Journal, SkippedLine
from pinstripe.bulk.manifest import Manifest
from pinstripe.bulk.prefix import prefix_digest
from pinstripe.bulk.rows import Rows
from pinstripe.bulk.sinks import Sink, check_format, open_sink
from pinstripe.errors import OutputError, UsageError

__all__ = ["Workspace", "check_job", "rows_kept", "skipped_path", "workspace_path"]

_MANIFEST: Final = "manifest.json"
_JOURNAL: Final = "journal.jsonl"


def workspace_path(output: Path) -> Path:
    """Return the directory of unfinished work for an output."""
    return output.with_name(f"{output.name}.partial")


def skipped_path(output: Path) -> Path:
    """Return the file that names the lines that were skipped."""
    return output.with_name(f"{output.name}.skipped.jsonl")


def rows_kept(job: BulkJob) -> int:
    """Return how many rows unfinished work for an output has."""
    return Journal.read(workspace_path(job.output) / _JOURNAL).rows


def check_job(job: BulkJob) -> None:
    """Raise if the output could not be made, before anything is begun.

    Raises:
        UsageError: It exists, its directory does not, or its format is unknown or needs a library that is missing.
    """
    check_format(job.output)
    if not job.output.parent.is_dir():
        raise UsageError(f"there is no directory {job.output.parent}; make it, or name another file")
    if job.output.is_dir():
        raise UsageError(f"{job.output} is a directory; name a file")
    if job.output.exists() and not job.force:
        raise UsageError(f"{job.output} exists; name another file, or replace it with --force")


class Workspace:
    """The directory of unfinished work for one output. One process at a time has it."""

    def __init__(self, job: BulkJob, manifest: Manifest) -> None:
        """Begin, or go on with what an earlier start left.

        Raises:
            UsageError: What is there is for something else.
            OutputError: The directory cannot be written, or another process has it.
        """
        self._job = job
        self._path = workspace_path(job.output)
        self._busy = threading.Lock()
        with self._writing():
            self._path.mkdir(exist_ok=True)
            self._lock = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with self._writing():
                self._begin(manifest)
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def checkpoint(self) -> Checkpoint:
        """How far the work is."""
        return self._journal.last

    @property
    def skipped(self) -> list[SkippedLine]:
        """All lines that were skipped."""
        return [line for checkpoint in self._journal.checkpoints for line in checkpoint.skipped]

    def append(self, rows: Rows, checkpoint: Checkpoint) -> None:
        """Add rows; when this returns they survive whatever happens.

        Args:
            rows: What follows the rows before.
            checkpoint: Where the work stands with them; `rows` and `size` are filled in here.

        Raises:
            OutputError: They could not be written; those before are kept.
        """
        with self._busy, self._writing():
            size = self._sink.append(rows) if rows.lines else self.checkpoint.size
            total = self.checkpoint.rows + len(rows.lines)
            self._journal.append(msgspec.structs.replace(checkpoint, rows=total, size=size))

    def finish(self) -> None:
        """Put the output in its place and remove the directory.

        Raises:
            OutputError: It could not be written; what is done is kept.
        """
        with self._writing():
            whole = self._sink.finish()
            self._write_skipped()
            whole.replace(self._job.output)
            shutil.rmtree(self._path)
            _sync_directory(self._job.output.parent)

    def close(self) -> None:
        """Close what is open, once nobody writes; the work can be gone on with."""
        with self._busy:
            self._close_files()
            os.close(self._lock)

    def _begin(self, manifest: Manifest) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                f"another run is writing {self._job.output}; wait for it, or name another file"
            ) from error
        obstacle = self._obstacle(manifest)
        if obstacle and not self._job.force:
            self._close_files()
            raise UsageError(f"cannot go on with {self._path}: {obstacle}; start over with --force")
        if obstacle:
            self._close_files()
            self._clear()
            self._open_files(manifest)
        self._write_manifest(manifest)

    def _open_files(self, manifest: Manifest) -> None:
        self._journal = Journal(self._path / _JOURNAL)
        self._sink: Sink = open_sink(self._job.output, self._path, manifest.model.task)

    def _close_files(self) -> None:
        self._sink.close()
        self._journal.close()

    def _obstacle(self, manifest: Manifest) -> str | None:
        """Open what is there; return why it cannot be gone on with, None if it can, or if there is nothing."""
        path = self._path / _MANIFEST
        if not path.exists():
            self._clear()  # an earlier start was ended before it did anything
        self._open_files(manifest)
        try:
            difference = manifest.difference(msgspec.json.decode(path.read_bytes(), type=Manifest))
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            return "its manifest is damaged, or of another version of pinstripe"
        if (
            difference is None
            and prefix_digest(self._job.source, self.checkpoint.offset).hexdigest() != self.checkpoint.digest
        ):
            difference = f"{self._job.source} has changed before line {self.checkpoint.line}"
        try:
            self._sink.cut(self.checkpoint.size)
        except EOFError:
            return "rows are missing from it"
        return difference

    def _clear(self) -> None:
        for path in self._path.iterdir():
            path.unlink()

    def _write_manifest(self, manifest: Manifest) -> None:
        unfinished = self._path / f"{_MANIFEST}.new"
        with unfinished.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest)))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._path / _MANIFEST)
        _sync_directory(self._path)

    def _write_skipped(self) -> None:
        path = skipped_path(self._job.output)
        if not self.skipped:
            path.unlink(missing_ok=True)
            return
        path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in self.skipped))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"cannot write {self._job.output}: {error.strerror or error}; what is done is kept in "
                f"{self._path}, and the same command goes on with it"
            ) from error


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
