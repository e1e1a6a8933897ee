"""Which OpenMP runtime computes in this process, and where its threads may run."""

import ctypes
import os
import threading
import time
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from pinstripe.errors import ExecutionError
from pinstripe.runtime.idle_threads import awake_ms
from pinstripe.runtime.libraries import ThreadingLibrary, loaded_threading_libraries, mapped_files

__all__ = ["NEVER_SLEEPS_MS", "WATCHED_MS", "OpenmpObservation", "TeamThread", "observe_openmp", "openmp_team"]

NEVER_SLEEPS_MS: Final = 2**31 - 1
"""What `kmp_get_blocktime` returns for `KMP_BLOCKTIME=infinite`."""
WATCHED_MS: Final = 40
"""How long idle threads are watched: several times what GNU's default of 300000 rounds takes on a free CPU."""
_ENTRY: Final = "GOMP_parallel"
"""Runs a function in a team: what GCC makes of `#pragma omp parallel`. All three runtimes export it."""
_USERS: Final = ("libtorch_cpu.so",)
"""Libraries of the engines that compute with OpenMP."""


class TeamThread(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thread of the team that computes.

    Attributes:
        tid: Its id.
        cpus: CPUs it may run on, ascending.
    """

    tid: int
    cpus: tuple[int, ...]


class OpenmpObservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The OpenMP runtime that serves parallel regions.

    Attributes:
        name: Which one: others may be mapped and idle.
        path: Its file, without symbolic links.
        team: The threads of a parallel region of the calling thread, as each of them said itself, by id.
        blocktime_ms: How long an idle thread spins before it sleeps, as the runtime says; `NEVER_SLEEPS_MS` for ever.
            None for GNU's, which counts rounds and cannot be asked.
        awake_ms: The same as seen by `idle_threads.awake_ms`, up to `WATCHED_MS`, where the runtime cannot be asked.
            None where it can, for a team of one thread, and where the kernel does not show the state of threads.
    """

    name: ThreadingLibrary
    path: str
    team: tuple[TeamThread, ...]
    blocktime_ms: int | None = None
    awake_ms: float | None = None


class _SymbolInfo(ctypes.Structure):
    """`Dl_info` of dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def observe_openmp() -> OpenmpObservation | None:
    """Run a parallel region in this thread and return what took part; None without an OpenMP runtime.

    To be called in the thread that computes: each thread that opens parallel regions has a team of its own.

    Raises:
        ExecutionError: What serves parallel regions is no runtime that is known.
    """
    library = _serving_library()
    if library is None:
        return None
    path = _file_of(library)
    known = loaded_threading_libraries([path])
    if not known:
        raise ExecutionError(f"{path} serves OpenMP, but is neither GNU's, Intel's nor LLVM's runtime")
    team = _region(library).team
    asked = getattr(library, "kmp_get_blocktime", None)
    return OpenmpObservation(
        name=known[0].name,  # type: ignore[arg-type] # the pattern for threading libraries names no allocator
        path=path,
        team=team,
        blocktime_ms=None if asked is None else int(asked()),
        awake_ms=_watched_ms(path) if asked is None and len(team) > 1 else None,
    )


def openmp_team() -> tuple[TeamThread, ...]:
    """Run a parallel region in this thread and return its threads; none without an OpenMP runtime."""
    library = _serving_library()
    return () if library is None else _region(library).team


def _serving_library() -> ctypes.CDLL | None:
    """Return the runtime that parallel regions reach.

    The dynamic loader looks names up in the global scope first, where a preloaded library comes before all others, and
    then in what the library that calls was linked to: ld.so(8), dlsym(3).
    """
    files = mapped_files(Path("/proc/self/maps").read_text(errors="replace"))
    users = [path for path in files if path.rpartition("/")[2] in _USERS]
    for scope in (None, *users):
        try:
            handle = ctypes.CDLL(scope, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:  # mapped, but not by the loader
            continue
        if hasattr(handle, _ENTRY):
            return ctypes.CDLL(_file_of(handle), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    return None


def _file_of(scope: ctypes.CDLL) -> str:
    """Return the file of the runtime whose entry is found through a scope."""
    found = _SymbolInfo()
    if not ctypes.CDLL(None).dladdr(ctypes.cast(scope[_ENTRY], ctypes.c_void_p), ctypes.byref(found)):
        raise ExecutionError(f"the dynamic loader does not say which library {_ENTRY} is in")
    return os.path.realpath(os.fsdecode(found.file))


class _Region(NamedTuple):
    """What took part in a parallel region.

    Attributes:
        team: The threads, by id.
        used_ns: CPU time that each had used when it was done, by its id.
        done_ns: When the last of them was done, on the monotonic clock.
    """

    team: tuple[TeamThread, ...]
    used_ns: dict[int, int]
    done_ns: int


def _region(library: ctypes.CDLL) -> _Region:
    """Run a parallel region with as many threads as the runtime gives this thread."""
    seen: dict[int, tuple[int, ...]] = {}
    used_ns: dict[int, int] = {}
    done_ns = [0]

    def note(_: int | None) -> None:
        # Called in threads that Python did not make: nothing here may need its `threading.Thread`.
        tid = threading.get_native_id()
        seen[tid] = tuple(sorted(os.sched_getaffinity(0)))
        done_ns[0] = time.monotonic_ns()
        used_ns[tid] = time.thread_time_ns()

    entry = library[_ENTRY]
    entry.restype = None
    entry(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(note), None, 0, 0)
    team = tuple(TeamThread(tid=tid, cpus=cpus) for tid, cpus in sorted(seen.items()))
    return _Region(team, used_ns, done_ns[0])


@cache
def _watched_ms(path: str) -> float | None:
    """Watch the team of a runtime being idle; once, since what is watched is set when a process starts."""
    library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    own = threading.get_native_id()

    def work() -> tuple[dict[int, int], int]:
        region = _region(library)
        return {tid: used_ns for tid, used_ns in region.used_ns.items() if tid != own}, region.done_ns

    return awake_ms(work, WATCHED_MS)
