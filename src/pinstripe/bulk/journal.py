"""How far the work is, a line for each step of it."""

import hashlib
from pathlib import Path

import msgspec

from pinstripe.bulk.row_file import RowFile

__all__ = ["Checkpoint", "Journal", "SkippedLine"]


class SkippedLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line that held no text, and why."""

    line: int
    reason: str


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far the work is.

    Attributes:
        line: Number of the next line to read, from 1.
        offset: Where it begins, in bytes.
        digest: SHA-256 of the file of texts up to there, in hexadecimal.
        rows: Rows that are written.
        characters: Characters of their texts.
        size: What the sink said after writing them.
        skipped: Lines that were skipped since the checkpoint before.
    """

    line: int = 1
    offset: int = 0
    digest: str = hashlib.sha256().hexdigest()
    rows: int = 0
    characters: int = 0
    size: int = 0
    skipped: tuple[SkippedLine, ...] = ()


class Journal:
    """Checkpoints, each added when everything before it is on the disk.

    Attributes:
        checkpoints: All of them, in order.
    """

    def __init__(self, path: Path) -> None:
        """Open or create it; a line that was cut off is no checkpoint and is dropped. Raises OSError."""
        self._file = RowFile(path)
        self.checkpoints, size = _whole_lines(path.read_bytes())
        self._file.cut(size)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Return the last checkpoint in a file, which another process may be writing."""
        checkpoints, _ = _whole_lines(path.read_bytes()) if path.exists() else ([], 0)
        return checkpoints[-1] if checkpoints else Checkpoint()

    @property
    def last(self) -> Checkpoint:
        """How far the work is; the begin of everything, if it has not begun."""
        return self.checkpoints[-1] if self.checkpoints else Checkpoint()

    def append(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint; it is on the disk when this returns."""
        self._file.append(msgspec.json.encode(checkpoint) + b"\n")
        self.checkpoints.append(checkpoint)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _whole_lines(content: bytes) -> tuple[list[Checkpoint], int]:
    """Return the checkpoints, and the size of their lines."""
    checkpoints: list[Checkpoint] = []
    size = 0
    for line in content.splitlines(keepends=True):
        if not line.endswith(b"\n"):  # cut off, perhaps just before its end
            break
        try:
            checkpoints.append(msgspec.json.decode(line, type=Checkpoint))
        except msgspec.DecodeError:
            break
        size += len(line)
    return checkpoints, size
