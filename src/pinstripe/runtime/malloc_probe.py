"""Which library serves this process's memory, and how."""

import ctypes
import mmap
import os
import resource
import threading
from collections.abc import Callable
from typing import Any, Final

import msgspec

from pinstripe.errors import ExecutionError
from pinstripe.runtime.libraries import Allocator, loaded_allocators

__all__ = ["MallocObservation", "observe_malloc"]

_BLOCK_BYTES: Final = 96 << 20
"""Larger than what glibc keeps by default (mallopt(3): M_MMAP_THRESHOLD grows to 32 MiB at most), and than the heap of
a thread's arena (64 MiB, HEAP_MAX_SIZE in its malloc/arena.c)."""
_TOUCHES: Final = 8
"""Of each block; far enough apart for no two to share a huge page of 2 MiB, and few enough to cost no memory."""
_ROUNDS: Final = 4
"""Allocators may put the first few blocks in different places before they use one again."""


class MallocObservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What serves `malloc`.

    Attributes:
        name: The library that `malloc` resolves to: a replacement that is mapped but not used is not it; None for one
            that is not known here.
        path: Its file.
        keeps_large: Whether a block of 96 MiB that was freed stays with the process, to be used again without page
            faults, in the main thread and in others; None where that cannot be told.
        settings: Settings read back from the allocator, by its own names.
    """

    name: Allocator | None
    path: str
    keeps_large: bool | None
    settings: dict[str, str] = {}


def observe_malloc() -> MallocObservation | None:
    """Return what serves memory in this process.

    Takes about 20 ms, a thread of its own that ends, and a block of memory of which little is touched.

    Raises:
        ExecutionError: The dynamic loader does not say whose `malloc` it is.
    """
    process = ctypes.CDLL(None)
    path = _file_of(process, "malloc")
    name = next((library.name for library in loaded_allocators([path])), None)
    return MallocObservation(
        name=msgspec.convert(name, Allocator | None),
        path=path,
        keeps_large=_keeps_large(process),
        settings=_settings(name, path),
    )


def _settings(name: str | None, path: str) -> dict[str, str]:
    read = _READERS.get(str(name))
    if read is None:
        return {}
    try:
        return read(ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW))
    except (AttributeError, OSError):  # a variant by that name that has other functions
        return {}


class _DlInfo(ctypes.Structure):
    """`Dl_info` of dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _file_of(process: ctypes.CDLL, symbol: str) -> str:
    """Return the file that a function comes from, as the global scope of the process resolves it."""
    info = _DlInfo()
    found = process.dladdr(ctypes.cast(getattr(process, symbol), ctypes.c_void_p), ctypes.byref(info))
    if not found or not info.file:
        raise ExecutionError(f"the dynamic loader does not say which library {symbol} is of; is it linked statically?")
    return os.fsdecode(info.file)


def _keeps_large(process: ctypes.CDLL) -> bool | None:
    try:
        if not _faults_of_new_memory():  # a sandbox that counts none
            return None
        answers = [_is_used_again(process)]
        other = threading.Thread(target=lambda: answers.append(_is_used_again(process)))
        other.start()
    except (OSError, RuntimeError):  # there is no more memory, or no more threads, to try it with
        return None
    other.join()
    return None if None in answers else all(answers)


def _faults_of_new_memory() -> int:
    with mmap.mmap(-1, _BLOCK_BYTES) as fresh:
        view = ctypes.c_char.from_buffer(fresh)
        faults = _faults(ctypes.addressof(view))
        del view  # the mapping cannot be closed before
    return faults


def _is_used_again(process: ctypes.CDLL) -> bool | None:
    """Return whether a block comes without page faults once it was freed a few times; None if there is no memory."""
    malloc, free = process.malloc, process.free
    malloc.argtypes, malloc.restype = (ctypes.c_size_t,), ctypes.c_void_p
    free.argtypes, free.restype = (ctypes.c_void_p,), None
    fewest = _TOUCHES
    for _ in range(_ROUNDS):
        block = malloc(_BLOCK_BYTES)
        if not block:
            return None
        fewest = min(fewest, _faults(block))
        free(block)
    return fewest == 0


def _faults(address: int) -> int:
    """Return the page faults of touching a block, in this thread."""
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for offset in range(0, _BLOCK_BYTES, _BLOCK_BYTES // _TOUCHES):
        ctypes.memset(address + offset, 1, 1)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


_JEMALLOC: Final[dict[str, type[Any]]] = {
    "version": ctypes.c_char_p,
    "opt.dirty_decay_ms": ctypes.c_ssize_t,
    "opt.muzzy_decay_ms": ctypes.c_ssize_t,
    "opt.oversize_threshold": ctypes.c_size_t,
    "opt.background_thread": ctypes.c_bool,
    "opt.narenas": ctypes.c_uint,
    "opt.thp": ctypes.c_char_p,
    "opt.metadata_thp": ctypes.c_char_p,
}
"""Read-only values by name, with their C types: jemalloc(3), MALLCTL NAMESPACE."""


def _read_jemalloc(library: ctypes.CDLL) -> dict[str, str]:
    settings = {}
    for name, kind in _JEMALLOC.items():
        value, size = kind(), ctypes.c_size_t(ctypes.sizeof(kind))
        # Non-zero for names that this version lacks.
        if library.mallctl(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)) == 0:
            settings[name] = _text(value.value)
    return settings


_TCMALLOC: Final = ("tcmalloc.max_total_thread_cache_bytes", "tcmalloc.aggressive_memory_decommit")
"""Properties of `MallocExtension`: gperftools/malloc_extension.h."""


def _read_tcmalloc(library: ctypes.CDLL) -> dict[str, str]:
    library.tc_version.restype = ctypes.c_char_p
    settings = {"version": _text(library.tc_version(None, None, None))}
    for name in _TCMALLOC:
        value = ctypes.c_size_t()
        if library.MallocExtension_GetNumericProperty(name.encode(), ctypes.byref(value)):
            settings[name] = str(value.value)
    return settings


def _read_mimalloc(library: ctypes.CDLL) -> dict[str, str]:
    return {"version": str(library.mi_version())}


def _read_glibc(library: ctypes.CDLL) -> dict[str, str]:
    library.gnu_get_libc_version.restype = ctypes.c_char_p
    return {"version": _text(library.gnu_get_libc_version())}


_READERS: Final[dict[str, Callable[[ctypes.CDLL], dict[str, str]]]] = {
    "jemalloc": _read_jemalloc,
    "tcmalloc": _read_tcmalloc,
    "mimalloc": _read_mimalloc,
    "glibc": _read_glibc,
}


def _text(value: bytes | int | bool | None) -> str:  # noqa: FBT001 - a value, not a switch
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value).lower()
