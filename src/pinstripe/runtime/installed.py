"""Allocators and OpenMP runtimes that lie on this host's disk, ready to be loaded or preloaded."""

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from pinstripe.runtime.libraries import Allocator, ThreadingLibrary, loaded_allocators, loaded_threading_libraries

__all__ = ["FoundLibraries", "InstalledLibrary", "find_libraries", "python_directories"]

_LOADER_CONFIGURATION = "etc/ld.so.conf"
_DEFAULT_DIRECTORIES = ("lib", "lib64", "usr/lib", "usr/lib64", "usr/local/lib", "usr/local/lib64")
_DEPTH_LIMIT = 8
"""Of files that include each other; a guard against circles."""
_SLOW_BUILDS = ("debug", "secure")
_ELF_BYTES = 20
"""The start of an ELF file, up to the machine it is for: elf(5)."""


class InstalledLibrary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A library on disk.

    Attributes:
        name: What it is.
        path: Its file, without symbolic links.
    """

    name: ThreadingLibrary | Allocator
    path: str


class FoundLibraries(NamedTuple):
    """Libraries on disk, by the processor that they are for.

    Attributes:
        own: Those for this interpreter's.
        foreign: Those for others, which cannot be loaded here.
    """

    own: tuple[InstalledLibrary, ...]
    foreign: tuple[InstalledLibrary, ...]


def find_libraries(root: Path = Path("/"), directories: Iterable[Path] | None = None) -> FoundLibraries:
    """Return the allocators that can replace the C library's, and the OpenMP runtimes and TBB, by name and path.

    They are searched by versioned names (`libjemalloc.so.2`), which is how distributions install them, in the dynamic
    loader's directories, those of the multi-architecture scheme included, and in this Python environment. Builds for
    debugging and hardening are left out.

    Args:
        root: Where the loader's configuration and directories are.
        directories: Others to search; None for those of this Python environment.
    """
    others = python_directories() if directories is None else directories
    paths: set[str] = set()
    for directory in (*_loader_directories(root), *others):
        try:
            names = os.listdir(directory)  # noqa: PTH208 - hundreds of directories, of which only names are needed
        except OSError:
            continue
        paths |= {os.path.realpath(f"{directory}/{name}") for name in names if name.startswith("lib") and _kind(name)}
    own_kind = _elf_kind(sys.executable)
    found: dict[bool, list[InstalledLibrary]] = {True: [], False: []}
    for path in sorted(paths):
        if (name := _kind(path)) is not None and own_kind is not None and (kind := _elf_kind(path)) is not None:
            found[kind == own_kind].append(InstalledLibrary(name=name, path=path))
    own, foreign = (tuple(sorted(found[fits], key=lambda library: library.name)) for fits in (True, False))
    return FoundLibraries(own, foreign)


def python_directories() -> tuple[Path, ...]:
    """Return the directories of this Python environment in which wheels and conda put shared libraries."""
    site = {Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("platlib"))}
    directories = [Path(sys.prefix, "lib"), Path(sys.base_prefix, "lib")]
    for package in (entry for directory in sorted(site) for entry in _entries(directory)):
        if package.endswith((".libs", ".prefix")) or "." not in package.rpartition("/")[2]:
            directories += (Path(package, name) for name in ("", "lib", "libs", ".libs"))
    return tuple(directories)


def _entries(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir())
    except OSError:
        return []


def _loader_directories(root: Path) -> list[Path]:
    listed = list(_configured(root, _LOADER_CONFIGURATION, 0))
    multiarch = [path.relative_to(root).as_posix() for path in root.glob("usr/lib/*-linux-*") if path.is_dir()]
    return [root / directory for directory in dict.fromkeys((*listed, *multiarch, *_DEFAULT_DIRECTORIES))]


def _configured(root: Path, file: str, depth: int) -> Iterator[str]:
    """Yield the directories of a configuration of the loader, as ldconfig(8) reads it, relative to the root."""
    try:
        lines = (root / file).read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        words = line.partition("#")[0].split()
        if words[:1] == ["include"] and depth < _DEPTH_LIMIT:
            for pattern in words[1:]:
                # A relative pattern counts from the file's own directory.
                relative = pattern.lstrip("/") if pattern.startswith("/") else f"{os.path.dirname(file)}/{pattern}"  # noqa: PTH120 - a word, no file
                for path in sorted(root.glob(relative)):
                    yield from _configured(root, path.relative_to(root).as_posix(), depth + 1)
        elif words and words[0].startswith("/"):
            yield words[0].lstrip("/")


def _kind(path: str) -> ThreadingLibrary | Allocator | None:
    if any(word in path.rpartition("/")[2] for word in _SLOW_BUILDS):
        return None
    found = (*loaded_threading_libraries([path]), *loaded_allocators([path]))
    return next((library.name for library in found if library.name not in {"glibc", "musl"}), None)


def _elf_kind(path: str) -> tuple[bytes, bytes] | None:
    """Return class (32 or 64 bits) with byte order, and machine, of an ELF file; None for other files."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(_ELF_BYTES)
    except OSError:
        return None
    return (head[4:6], head[18:20]) if head.startswith(b"\x7fELF") and len(head) == _ELF_BYTES else None
