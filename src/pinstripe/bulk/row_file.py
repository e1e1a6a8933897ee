"""A file that grows, and can be cut back."""

import os
from pathlib import Path

__all__ = ["RowFile"]


class RowFile:
    """A file for appending, durable after each write. Nothing is buffered that could fail later. Raises OSError."""

    def __init__(self, path: Path) -> None:
        """Open or create it."""
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @property
    def size(self) -> int:
        """Bytes in it."""
        return os.fstat(self._file).st_size

    def cut(self, size: int) -> None:
        """Make it `size` bytes long.

        Raises:
            EOFError: It is shorter.
        """
        if self.size < size:
            raise EOFError(self.path)
        os.ftruncate(self._file, size)

    def append(self, content: bytes | memoryview) -> int:
        """Write at the end; return the file's size once it is on the disk."""
        return self._write(content, self.size)

    def overwrite(self, content: bytes) -> None:
        """Write at the begin."""
        self._write(content, 0)

    def close(self) -> None:
        """Close it."""
        os.close(self._file)

    def _write(self, content: bytes | memoryview, offset: int) -> int:
        """Write at an offset; return the offset behind."""
        left = memoryview(content)
        while left:
            written = os.pwrite(self._file, left, offset)
            offset += written
            left = left[written:]
        os.fsync(self._file)
        return offset
