"""A file that grows, and can be cut back."""

import os
from pathlib import Path

__all__ = ["RowFile"]


class RowFile:
    """A file for appending, durable after each write."""

    def __init__(self, path: Path) -> None:
        """Open or create it; raises OSError."""
        self.path = path
        self._file = path.open("r+b" if path.exists() else "w+b")

    @property
    def size(self) -> int:
        """Bytes in it."""
        return os.fstat(self._file.fileno()).st_size

    def cut(self, size: int) -> None:
        """Make it `size` bytes long.

        Raises:
            EOFError: It is shorter.
        """
        if self.size < size:
            raise EOFError(self.path)
        self._file.truncate(size)

    def append(self, content: bytes | memoryview) -> int:
        """Write at the end; return the file's size once it is on the disk."""
        self._file.seek(0, os.SEEK_END)
        self._file.write(content)
        self._sync()
        return self._file.tell()

    def overwrite(self, content: bytes) -> None:
        """Write at the begin."""
        self._file.seek(0)
        self._file.write(content)
        self._sync()

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
