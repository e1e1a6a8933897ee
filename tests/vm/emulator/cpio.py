"""Archives that the kernel unpacks as its first file system."""

import importlib.util
import io
import marshal
import stat
import warnings
from collections.abc import Callable
from pathlib import Path

__all__ = ["Cpio"]

_BLOCK = 512
_UNCHECKED = 1  # flags of a bytecode file: its source is not looked at (PEP 552)


class Cpio:
    """An archive in the format newc, see Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.

    Names are absolute or relative, which is the same; directories are made as they are needed.
    """

    def __init__(self) -> None:
        self._out = io.BytesIO()
        self._entries = 0
        self._directories: set[str] = {"."}

    def directory(self, name: str) -> None:
        """Add a directory and those above it."""
        path = Path(name.strip("/"))
        if str(path) not in self._directories:
            self.directory(str(path.parent))
            self._directories.add(str(path))
            self._add(path, stat.S_IFDIR | 0o755)

    def file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Add a file."""
        self._add(self._placed(name), stat.S_IFREG | mode, data)

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        self._add(self._placed(name), stat.S_IFLNK | 0o777, target.encode())

    def device(self, name: str, major: int, minor: int) -> None:
        """Add a character device."""
        self._add(self._placed(name), stat.S_IFCHR | 0o666, device=(major, minor))

    def tree(self, source: Path, name: str, skip: Callable[[Path], bool] = lambda _: False) -> None:
        """Add a file, or a directory with all that is in it; Python's own bytecode is made anew, so it is never stale.

        Args:
            source: What to add.
            name: What to call it.
            skip: Says of paths below the source whether to leave them out.
        """
        if source.is_symlink():
            self.link(name, str(source.readlink()))
        elif source.is_dir():
            self.directory(name)
            for path in sorted(source.iterdir()):
                if path.name != "__pycache__" and not skip(path):
                    self.tree(path, f"{name}/{path.name}", skip)
        else:
            data = source.read_bytes()
            self.file(name, data, stat.S_IMODE(source.stat().st_mode))
            if source.suffix == ".py":
                self.file(importlib.util.cache_from_source(name, optimization=""), _bytecode(data, name))

    def finished(self) -> bytes:
        """Return the archive; nothing can be added to it any more."""
        self._add(Path("TRAILER!!!"), 0)
        return self._padded(_BLOCK).getvalue()

    def _placed(self, name: str) -> Path:
        path = Path(name.strip("/"))
        self.directory(str(path.parent))
        return path

    def _add(self, path: Path, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._entries += 1
        name = str(path).encode() + b"\0"
        fields = (self._entries, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        self._out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        self._padded(4).write(data)
        self._padded(4)

    def _padded(self, size: int) -> io.BytesIO:
        self._out.write(bytes(-self._out.tell() % size))
        return self._out


def _bytecode(source: bytes, name: str) -> bytes:
    """Compile for the guest, whose Python has the same minor version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern its authors
        code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
    header = importlib.util.MAGIC_NUMBER + _UNCHECKED.to_bytes(4, "little") + importlib.util.source_hash(source)
    return header + code
