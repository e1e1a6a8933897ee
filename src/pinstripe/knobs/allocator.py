"""What serves an instance's memory."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from pinstripe.knobs.host import Host
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen, Setting
from pinstripe.knobs.lists import appended, without
from pinstripe.knobs.preloads import inherited_preloads
from pinstripe.knobs.values import ForEveryEngine, OfWords
from pinstripe.runtime import LoadedLibrary, MallocObservation, loaded_allocators

__all__ = ["Allocator", "replacement_file"]

_PACKAGES: Final = {
    "tcmalloc": "libtcmalloc is not installed; apt-get install libtcmalloc-minimal4",
    "jemalloc": "libjemalloc is not installed; apt-get install libjemalloc2",
    "mimalloc": "libmimalloc is not installed; pip install cmeel-mimalloc, or apt-get install libmimalloc2.0",
    "tbbmalloc": "libtbbmalloc_proxy is not installed; pip install tbb",
}
_C_LIBRARIES: Final = ("glibc", "musl")

_TUNABLES: Final = "GLIBC_TUNABLES"
_TUNABLES_SINCE: Final = (2, 26)
_OF_MALLOC: Final = "glibc.malloc."
_KEEP_ALL: Final = {
    "mmap_max": 0,  # no block is mapped for itself: it would be unmapped when it is freed
    "trim_threshold": 1 << 40,  # nor is memory given back at the end of the heap
    "arena_max": 1,  # heaps of other threads end at 64 MiB, above which blocks are mapped after all
    "top_pad": 64 << 20,  # the heap grows in steps of this size, so that fragments at its end find room
}
"""Tunables by which glibc keeps what is freed: the GNU C library's manual, Memory Allocation Tunables. A threshold for
mapping would not do: before 2.35, one above 32 MiB is ignored."""

_JEMALLOC: Final = "MALLOC_CONF"
_NEVER: Final = "-1"
_KEEP: Final = f"oversize_threshold:0,dirty_decay_ms:{_NEVER},muzzy_decay_ms:{_NEVER}"
"""jemalloc(3), TUNING. Blocks above 8 MiB would have an arena that gives them back at once. The long decay that is
often advised (9000000000 ms) does not do in the main thread's arena of 5.3.0, which decays all the same; never does."""

_PREFIXES: Final = ("MALLOC_", "MIMALLOC_", "TCMALLOC_", "TBB_MALLOC_")
"""Of variables that change what an allocator does; MALLOC_ is glibc's (mallopt(3)) and jemalloc's."""
_TBB: Final = {"TBB_ENABLE_SANITIZERS": "1"}
"""Has TBB load its parts without RTLD_DEEPBIND, by which they would free with the C library what the replacement
allocated, and the process abort (its src/tbb/dynamic_link.cpp)."""


class Allocator(ForEveryEngine, OfWords):
    """Library that serves `malloc`, and whether it keeps large blocks that are freed.

    Activations of long texts take blocks of many MiB. An allocator that gives these back to the kernel pays for each
    page of them, with each forward, as it did the first time.
    """

    name: ClassVar[str] = "allocator"
    summary: ClassVar[str] = "what serves memory, and whether large blocks stay with the process (-tuned, -keep)"
    accepts: ClassVar[str] = "glibc, glibc-tuned, tcmalloc, jemalloc, jemalloc-keep, mimalloc or tbbmalloc"
    default: ClassVar[str] = AUTO
    words: ClassVar[tuple[str, ...]] = (
        "glibc",
        "glibc-tuned",
        "tcmalloc",
        "jemalloc",
        "jemalloc-keep",
        "mimalloc",
        "tbbmalloc",
    )

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse libraries that are not installed, and glibc where it is not the C library."""
        name, host = _library(value), context.host
        if name == "glibc":
            return _unlike_glibc(value, host.glibc)
        if replacement_file(name, host) is not None:
            return None
        other = next((library.path for library in host.foreign if library.name == name), None)
        return _PACKAGES[name] if other is None else f"{other} is for another processor; {_PACKAGES[name]}"

    def setting(self, value: str, context: Context) -> Setting:
        """Preload the library, without the settings and the preloaded allocators that a worker would inherit."""
        environment = _without_settings(os.environ)
        if value == "glibc-tuned":
            tunables = ":".join(f"{_OF_MALLOC}{name}={number}" for name, number in _KEEP_ALL.items())
            environment[_TUNABLES] = appended(_TUNABLES, environment.get(_TUNABLES), tunables)
        if value == "jemalloc-keep":
            environment[_JEMALLOC] = _KEEP
        path = replacement_file(_library(value), context.host)
        unload = tuple(filter(_replaces, inherited_preloads()))
        if path is None:
            return Setting(environment=environment, unload=unload)
        if context.engine is not None and context.engine.threading == "tbb":
            environment |= _TBB
        return Setting(environment=environment, preload=_with_needed(path), unload=unload)

    def effective(self, seen: Seen) -> Effective:
        """Return whose `malloc` the worker calls, and what it did with large blocks."""
        found = seen.observation.malloc
        if found is None:
            why = seen.observation.unread.get("malloc", "it was not asked")
            return Effective("unknown", f"what serves memory cannot be told: {why}")
        served = _served(found, seen.process.allocators)
        match found.name, found.keeps_large:
            case "glibc", None:
                return Effective("unknown", f"{served}; whether it keeps large blocks cannot be told")
            case "glibc", keeps:
                how = "keeps large blocks" if keeps else "gives large blocks back"
                return Effective("glibc-tuned" if keeps else "glibc", f"{served}, which {how}")
            case "jemalloc", keeps:
                decay = found.settings.get("opt.dirty_decay_ms")
                value = "jemalloc-keep" if decay == _NEVER and keeps is not False else "jemalloc"
                how = ", which gives large blocks back" if keeps is False else ""
                return Effective(value, f"{served}{how} (opt.dirty_decay_ms is {decay})")
        return Effective(found.name or found.path, served)


def _library(value: str) -> str:
    return value.partition("-")[0]


def _unlike_glibc(value: str, version: tuple[int, int] | None) -> str | None:
    """Return why the C library is not the one that is meant."""
    if version is None:
        return "the C library here is not glibc; leave it at auto"
    if value == "glibc-tuned" and version < _TUNABLES_SINCE:
        return f"glibc {'.'.join(map(str, version))} has no tunables, 2.26 has; choose another allocator"
    return None


def replacement_file(name: str, host: Host) -> str | None:
    """Return the newest version of a library; of tcmalloc the one without profilers, which trouble processes."""
    paths = (library.path for library in host.libraries if library.name == name)
    return max(paths, key=lambda path: ("minimal" in path.rpartition("/")[2], _version(path)), default=None)


def _version(path: str) -> list[int]:
    """Return the version that a file's name gives after `.so`."""
    return [int(number) for number in re.findall(r"\d+", path.rpartition(".so")[2])]


def _with_needed(path: str) -> tuple[str, ...]:
    """Return a library and the one beside it that it needs, which the loader would not find in a wheel."""
    needed = Path(path).with_name(Path(path).name.replace("_proxy", ""))
    return (path,) if str(needed) == path else (path, str(needed))


def _without_settings(inherited: Mapping[str, str]) -> dict[str, str | None]:
    """Return what a worker has instead of what it would inherit: tunables that do not concern malloc, and no others."""
    changed: dict[str, str | None] = {name: None for name in inherited if name.startswith(_PREFIXES)}
    if _TUNABLES in inherited:
        changed[_TUNABLES] = without(_TUNABLES, inherited[_TUNABLES], _OF_MALLOC)
    return changed


def _replaces(path: str) -> bool:
    return any(library.name not in _C_LIBRARIES for library in loaded_allocators([path]))


def _served(found: MallocObservation, mapped: tuple[LoadedLibrary, ...]) -> str:
    """Return what serves memory, and which others are there for nothing."""
    idle = [library for library in mapped if library.name not in {*_C_LIBRARIES, found.name}]
    if found.name in _C_LIBRARIES and not idle:
        return f"memory map shows {found.name}"
    names = " and ".join(library.path.rpartition("/")[2] for library in idle)
    mapped_too = f", {names} {'is' if len(idle) == 1 else 'are'} mapped but idle" if idle else ""
    return f"malloc is that of {found.path}{mapped_too}"
