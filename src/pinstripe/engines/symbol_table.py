"""Functions of a loaded library that it does not export: its symbol table tells where they are, unless stripped."""

import mmap
import struct
from pathlib import Path
from typing import Final

import numpy as np

__all__ = ["inner_function"]

# Structures and constants of 64-bit ELF files, see elf(5).
_MAGIC: Final = b"\x7fELF\x02\x01"  # 64 bits, little endian
_SECTIONS: Final = struct.Struct("<40xQ10xHH")
_SEGMENTS: Final = struct.Struct("<32xQ14xHH")
_SEGMENT: Final = struct.Struct("<I4xQQ")
_LOADED: Final = 1
_SECTION: Final = struct.Struct("<4xI16xQQI20x")
_SYMBOL_TABLE: Final = 2
_FUNCTION: Final = 2
_SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


def inner_function(library: Path, name: str) -> int | None:
    """Return the address of a function in this process; None if the library does not tell or is not loaded.

    Args:
        library: Its file.
        name: As C names it.
    """
    base = _loaded_at(library)
    if base is None:
        return None
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        offset = _offset(content, name.encode())
    return None if offset is None else base + offset


def _loaded_at(library: Path) -> int | None:
    """Return where a library begins in memory; None if what is loaded is not the file that is there now."""
    if not library.exists():
        return None
    wanted = library.stat().st_ino
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, _, offset, _, inode, *path = line.split(maxsplit=5)
        if int(inode) == wanted and not int(offset, 16) and path and Path(path[0]).name == library.name:
            return int(addresses.partition("-")[0], 16)
    return None


def _offset(content: mmap.mmap, name: bytes) -> int | None:
    """Return where a function begins, from the beginning of the library in memory."""
    if content[: len(_MAGIC)] != _MAGIC or not _begins_at_zero(content):
        return None
    first, size, count = _SECTIONS.unpack_from(content)
    sections = [_SECTION.unpack_from(content, first + index * size) for index in range(count)]
    for kind, offset, length, link in sections:
        if kind != _SYMBOL_TABLE:
            continue
        _, names, names_length, _ = sections[link]
        at = content.find(b"\0" + name + b"\0", names, names + names_length)
        if at < 0:
            return None
        symbols = np.frombuffer(content, _SYMBOL, length // _SYMBOL.itemsize, offset)
        found = [
            int(one["value"]) for one in symbols[symbols["name"] == at + 1 - names] if one["info"] & 15 == _FUNCTION
        ]
        del symbols  # which would keep the file mapped
        return found[0] if len(found) == 1 else None
    return None


def _begins_at_zero(content: mmap.mmap) -> bool:
    """Return whether addresses count from the beginning of the file, as they do unless a linker was told otherwise."""
    first, size, count = _SEGMENTS.unpack_from(content)
    segments = (_SEGMENT.unpack_from(content, first + index * size) for index in range(count))
    return next((address == 0 for kind, offset, address in segments if kind == _LOADED and offset == 0), False)
