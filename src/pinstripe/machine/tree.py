"""The files below a root: the live system's `/`, or a copy of another machine's `/proc` and `/sys`."""

import os
from collections.abc import Callable
from pathlib import Path

from pinstripe.errors import MachineError
from pinstripe.machine.cpu_list import parse_cpu_list, parse_cpu_mask

__all__ = ["Tree"]

# Enough for every file read here, the mount table of a busy host included; a guard against endless files.
_LIMIT_BYTES = 1 << 22


class Tree:
    """Kernel files below a root, by path relative to it. What is missing, unreadable or malformed is None."""

    def __init__(self, root: Path) -> None:
        """Take the root; nothing is read yet."""
        self.root = root
        self._prefix = os.path.join(root, "")  # noqa: PTH118 - hundreds of files are read, and Path doubles the time

    @property
    def is_live(self) -> bool:
        """Whether this is the running system, whose affinity can be asked of the kernel."""
        return os.path.realpath(self.root) == "/"

    def text(self, path: str, limit_bytes: int = _LIMIT_BYTES) -> str | None:
        """Return the first `limit_bytes` of a file."""
        try:
            with open(self._prefix + path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
                content = chunk = file.read(4096)
                while chunk and len(content) < limit_bytes:
                    chunk = file.read(1 << 16)
                    content += chunk
        except OSError:
            return None
        return content[:limit_bytes].decode("utf-8", errors="replace")

    def number(self, path: str) -> int | None:
        """Return the decimal number that a file holds, at least 0."""
        content = self.text(path)
        stripped = content.strip("\0 \t\r\n") if content else ""
        return int(stripped) if stripped.isascii() and stripped.isdigit() and len(stripped) < 20 else None  # noqa: PLR2004 - digits of 2**64

    def cpu_list(self, path: str) -> tuple[int, ...] | None:
        """Return the list of CPUs or nodes that a file holds."""
        return _parsed(parse_cpu_list, self.text(path))

    def cpu_mask(self, path: str) -> tuple[int, ...] | None:
        """Return the CPUs of the mask that a file holds."""
        return _parsed(parse_cpu_mask, self.text(path))

    def cpu_set(self, list_path: str, mask_path: str) -> tuple[int, ...] | None:
        """Return a set that the kernel gives as a list, as a mask, or as both; an empty list defers to the mask."""
        listed = self.cpu_list(list_path)
        masked = None if listed else self.cpu_mask(mask_path)
        return listed if masked is None else masked

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if there is no such directory."""
        try:
            return sorted(os.listdir(self._prefix + path))  # noqa: PTH208 - as above
        except OSError:
            return []

    def numbered(self, path: str, stem: str) -> list[int]:
        """Return the numbers N of the entries `stem`N of a directory, ascending."""
        endings = (name.removeprefix(stem) for name in self.names(path) if name.startswith(stem))
        return sorted(int(ending) for ending in endings if ending.isascii() and ending.isdigit())

    def is_directory(self, path: str) -> bool:
        """Return whether a path is a directory."""
        return os.path.isdir(self._prefix + path)  # noqa: PTH112 - as above


def _parsed(parse: Callable[[str], tuple[int, ...]], content: str | None) -> tuple[int, ...] | None:
    if content is None:
        return None
    try:
        return parse(content)
    except MachineError:
        return None
