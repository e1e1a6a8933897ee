"""Unfinished work beside the output: what is done, so that it need not be done again."""

import fcntl
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from pinstripe.bulk.job import BulkJob
from pinstripe.bulk.journal import Checkpoint, Journal, SkippedLine
from pinstripe.bulk.manifest import Manifest
from pinstripe.bulk.output import skipped_path, workspace_path
from pinstripe.bulk.prefix import prefix_digest
from pinstripe.bulk.rows import Rows
from pinstripe.bulk.sinks import Sink, open_sink
from pinstripe.errors import OutputError, UsageError

__all__ = ["Workspace", "rows_kept"]

_MANIFEST: Final = "manifest.json"
_JOURNAL: Final = "journal.jsonl"
_OWN: Final = re.compile(r"manifest\.json(\.new)?|journal\.jsonl|rows\.(npy|jsonl)|part-\d+\.parquet|whole\.parquet")


def rows_kept(job: BulkJob) -> int:
    """Return how many rows unfinished work for an output has."""
    return Journal.read(workspace_path(job.output) / _JOURNAL).rows


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
            self._is_new = not self._path.exists()
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
            OutputError: It could not be written, or somebody has made a file of its name; what is done is kept.
        """
        with self._busy, self._writing():
            whole = self._sink.finish()
            self._write_skipped()
            _move(whole, self._job.output, replace=self._job.force)
            _sync_directory(self._job.output.parent)
            self._clear()
            with suppress(OSError):  # somebody has put something there
                self._path.rmdir()

    def close(self) -> None:
        """Close what is open, once nobody writes; the work can be gone on with. If none was begun, nothing is left."""
        with self._busy:
            self._close_files()
            if self._is_new and not self.checkpoint.rows:
                with suppress(OSError):  # it is finished already, or somebody has put something there
                    self._clear()
                    self._path.rmdir()
            os.close(self._lock)

    def _begin(self, manifest: Manifest) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                f"another run is writing {self._job.output}; wait for it, or name another file"
            ) from error
        obstacle = self._obstacle(manifest)
        if obstacle and self.checkpoint.rows and not self._job.force:
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
            if foreign := next((one.name for one in self._path.iterdir() if not _OWN.fullmatch(one.name)), None):
                raise UsageError(f"{self._path} is needed for unfinished work, but holds {foreign}; move it away")
            self._clear()  # an earlier start was ended before it did anything
        self._open_files(manifest)
        try:
            difference = manifest.difference(msgspec.json.decode(path.read_bytes(), type=Manifest))
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            return "its manifest is damaged, or of another version of pinstripe"
        if difference is None and self._input_has_changed():
            difference = f"{self._job.source} has changed before line {self.checkpoint.line}"
        try:
            self._sink.cut(self.checkpoint.size)
        except EOFError:
            return "rows are missing from it"
        return difference

    def _input_has_changed(self) -> bool:
        """Return whether the lines that are done are no longer what they were."""
        done = self.checkpoint
        if prefix_digest(self._job.source, done.offset).hexdigest() != done.digest:
            return True
        with self._job.source.open("rb") as file:
            file.seek(max(0, done.offset - 1))
            # The last line may have had no end, and have grown since.
            return done.offset > 0 and file.read(1) != b"\n" and file.read(1) != b""

    def _clear(self) -> None:
        """Remove the files that an earlier start has made, and no others."""
        for path in self._path.iterdir():
            if _OWN.fullmatch(path.name):
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
        if self._job.bad_lines == "skip":
            lines = b"".join(msgspec.json.encode(line) + b"\n" for line in self.skipped)
            skipped_path(self._job.output).write_bytes(lines)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"cannot write {self._job.output}: {error.strerror or error}; what is done is kept in "
                f"{self._path}, and the same command goes on with it"
            ) from error


def _move(source: Path, target: Path, *, replace: bool) -> None:
    """Give a file its final name, at once; what has that name already is replaced only if asked for."""
    if replace:
        source.replace(target)
        return
    try:
        os.link(source, target)
    except FileExistsError as error:
        raise OutputError(
            f"{target} was made by somebody meanwhile; move it away, and the same command finishes the work"
        ) from error
    except OSError:  # a file system without hard links
        if target.exists():
            raise
        source.replace(target)
        return
    source.unlink()


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
