"""Which threading and allocator libraries a process has loaded, from its memory map."""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

__all__ = [
    "Allocator",
    "LoadedLibrary",
    "ThreadingLibrary",
    "loaded_allocators",
    "loaded_threading_libraries",
    "mapped_files",
]

ThreadingLibrary = Literal["gomp", "iomp", "omp", "tbb"]
Allocator = Literal["tcmalloc", "jemalloc", "mimalloc", "tbbmalloc", "glibc", "musl"]

# By file name. Wheels carry renamed copies, such as libgomp-a34b3233.so.1; distributions add versions.
_THREADING = re.compile(r"lib(?:(?P<gomp>gomp)|(?P<iomp>iomp5)|(?P<omp>omp)|(?P<tbb>tbb))(?:-[^/]*)?\.so")
# Only the proxy of TBB's allocator takes the place of malloc; OpenVINO and others load the rest for themselves.
_REPLACEMENT = re.compile(
    r"lib(?:(?P<tcmalloc>tcmalloc)|(?P<jemalloc>jemalloc)|(?P<mimalloc>mimalloc)|(?P<tbbmalloc>tbbmalloc_proxy))[^/]*\.so"
)
_C_LIBRARY = re.compile(r"(?P<glibc>libc\.so\.6|libc-2\.\d+\.so)|(?P<musl>ld-musl-.*\.so|libc\.musl-.*\.so)")


class LoadedLibrary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A library in the memory map of a process.

    Attributes:
        name: What it is: a `ThreadingLibrary` or an `Allocator`.
        path: The file it was loaded from.
    """

    name: ThreadingLibrary | Allocator
    path: str


def mapped_files(maps: str) -> list[str]:
    """Return the paths of the files in the text of a `/proc/PID/maps`, sorted, each once."""
    paths = {fields[5] for line in maps.splitlines() if len(fields := line.split(maxsplit=5)) == 6}  # noqa: PLR2004 - proc(5)
    return sorted(path for path in paths if path.startswith("/"))


def loaded_threading_libraries(paths: Iterable[str]) -> tuple[LoadedLibrary, ...]:
    """Return the OpenMP runtimes and TBB among mapped files.

    Several OpenMP runtimes may be mapped at once; that need not mean that several run. libiomp5 also answers for
    libgomp when it is preloaded.
    """
    return _matching(_THREADING, paths)


def loaded_allocators(paths: Iterable[str]) -> tuple[LoadedLibrary, ...]:
    """Return the allocators among mapped files: those that replace the C library's, or else that one.

    Empty for a statically linked program. Being mapped is not yet being used: a replacement that was loaded late,
    rather than preloaded, serves only what is linked to it.
    """
    paths = list(paths)
    return _matching(_REPLACEMENT, paths) or _matching(_C_LIBRARY, paths)


def _matching(pattern: re.Pattern[str], paths: Iterable[str]) -> tuple[LoadedLibrary, ...]:
    matches = ((pattern.match(path.rpartition("/")[2]), path) for path in paths)
    found = ({"name": match.lastgroup, "path": path} for match, path in matches if match)
    return tuple(msgspec.convert(library, LoadedLibrary) for library in found)
