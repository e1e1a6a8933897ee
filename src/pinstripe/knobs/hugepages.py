"""Whether an instance's memory comes in transparent huge pages."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from pinstripe.knobs.allocator import replacement_file
from pinstripe.knobs.host import Host
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen, Setting
from pinstripe.knobs.lists import LISTS, appended, without
from pinstripe.knobs.preloads import inherited_preloads
from pinstripe.knobs.values import ForEveryEngine, OfWords
from pinstripe.runtime import HugePages, HugePagesObservation, inherited_huge_pages, loaded_allocators

__all__ = ["HugePagesKnob"]

_EXCEPT_ADVISED_SINCE: Final = (6, 18)
"""PR_THP_DISABLE_EXCEPT_ADVISED: man 2 PR_SET_THP_DISABLE."""
_GLIBC_TUNABLE_SINCE: Final = (2, 35)
"""glibc.malloc.hugetlb: the GNU C library's manual, Memory Allocation Tunables."""
_CHANGE: Final = "`bench --system-hugepages {mode}`, as root, changes it for its run, an administrator for all commands"
_ASKING: Final = {"glibc": ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"), "jemalloc": ("MALLOC_CONF", "thp:always")}
"""The setting, of a variable of `LISTS`, by which an allocator asks for huge pages where the system wants that."""
_MIMALLOC_OPTION: Final = b"allow_thp"
"""Name of the option within the library's file; names of files do not always carry a version."""


class _Allocator(NamedTuple):
    """What will serve `malloc` in a worker.

    Attributes:
        name: `glibc`, or the library that takes its place.
        paths: Files that it may be loaded from.
    """

    name: str
    paths: tuple[str, ...]


class HugePagesKnob(ForEveryEngine, OfWords):
    """Transparent huge pages of the process.

    `never` and `madvise` restrict the process (`StartRequest.huge_pages`). For `always` the allocator asks for them
    where the system gives them only to memory that does.
    """

    name: ClassVar[str] = "hugepages"
    summary: ClassVar[str] = "which memory of the process comes in transparent huge pages"
    accepts: ClassVar[str] = "never, madvise or always"
    default: ClassVar[str] = AUTO
    words: ClassVar[tuple[str, ...]] = ("never", "madvise", "always")

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse what neither the system's mode nor the allocator gives."""
        if (why := _withheld(value, context.host.huge_pages)) is not None:
            return why
        match value:
            case "always" if context.host.huge_pages == "madvise":
                return _cannot_ask(_allocator(context), context.host)
            case "madvise":
                return _cannot_leave_out(_allocator(context), context.host)
        return None

    def setting(self, value: str, context: Context) -> Setting:
        """Restrict the process, or have its allocator ask."""
        if value == "never":
            return Setting(huge_pages="never")
        if value == "madvise":
            huge_pages: HugePages = "advised" if context.host.huge_pages == "always" else "inherit"
            return Setting(huge_pages=huge_pages, environment={} if _names_allocator(context) else _not_asking())
        asking = _asking(_allocator(context), context.host.huge_pages)
        if not _names_allocator(context):
            asking = {
                name: appended(name, os.environ.get(name), text) if name in LISTS else text
                for name, text in asking.items()
            }
        return Setting(environment=asking)

    def effective(self, seen: Seen) -> Effective:
        """Judge by what memory came in that the process tried."""
        observed = seen.observation.huge_pages
        if observed is None:
            return Effective("unknown", seen.observation.unread.get("huge_pages", "this kernel has no huge pages"))
        value, why = _judge(observed)
        in_huge_pages = seen.process.anonymous_huge_bytes
        if "scarce" in {observed.allocated, observed.advised}:
            if not in_huge_pages:
                return Effective("unknown", f"{why}, but none is free: memory is short or fragmented")
            why = f"{why}; none is free now"
        if seen.process.thp_enabled is False:
            why = f"{why} (THP_enabled: 0)"
        if in_huge_pages is not None:
            why = f"{why}; {in_huge_pages >> 20} of the process's {seen.process.rss_bytes >> 20} MiB are in huge pages"
        return Effective(value, why)


def _withheld(value: str, mode: str | None) -> str | None:
    """Return why the system does not give a process what is wanted."""
    if mode is None:
        return "this kernel has no transparent huge pages; leave it at auto"
    if value == "never":
        return None
    if mode == "never":
        return f"the system's mode is never; {_CHANGE.format(mode=value)}"
    inherited = inherited_huge_pages()
    if inherited == "never" or (inherited == "advised" and value == "always"):
        return f"what started this process restricts it to {inherited} (PR_SET_THP_DISABLE); start it elsewhere"
    return None


def _judge(observed: HugePagesObservation) -> tuple[str, str]:
    match observed.allocated, observed.advised:
        case "small", "small":
            return "never", "the process may have no huge pages"
        case "small", "huge":
            return "madvise", "memory of malloc came in small pages, advised memory in huge ones"
        case "small", _:
            return "madvise", "only advised memory may come in huge pages"
        case "huge", "huge":
            return "always", "memory of malloc came in huge pages"
        case _:
            return "always", "memory of malloc may come in huge pages"


def _names_allocator(context: Context) -> bool:
    """Return whether an allocator is asked for: then that knob says what is left of the settings that are inherited."""
    return context.chosen.get("allocator", AUTO) != AUTO


def _not_asking(inherited: Mapping[str, str] = os.environ) -> dict[str, str | None]:
    """Return the variables without what has an allocator ask for huge pages; none where nothing does."""
    asking = {name: text.removesuffix("=1") for name, text in _ASKING.values()}  # glibc also asks with 2
    left = {name: without(name, inherited[name], text) for name, text in asking.items() if name in inherited}
    return {name: text for name, text in left.items() if text != inherited[name]}


def _allocator(context: Context) -> _Allocator:
    """Return the allocator that is chosen, or else the one that a worker inherits or has anyway."""
    chosen = context.chosen.get("allocator", AUTO).partition("-")[0]  # glibc-tuned is glibc, jemalloc-keep jemalloc
    if chosen != AUTO:
        return _Allocator(chosen, tuple(filter(None, [replacement_file(chosen, context.host)])))
    if preloaded := loaded_allocators(inherited_preloads()):
        return _Allocator(preloaded[0].name, _files(preloaded[0].path, context.host))
    return _Allocator("glibc" if context.host.glibc else "the C library", ())


def _files(entry: str, host: Host) -> tuple[str, ...]:
    """Return the files that an entry of LD_PRELOAD may stand for: a name without a directory is searched."""
    if "/" in entry:
        return (entry,)
    beside = (Path(library.path).with_name(entry) for library in host.libraries)
    return tuple(sorted({str(path) for path in beside if path.is_file()}))


def _cannot_ask(allocator: _Allocator, host: Host) -> str | None:
    """Return why an allocator does not ask the kernel for huge pages."""
    otherwise = f"choose another allocator, or another mode of the system: {_CHANGE.format(mode='always')}"
    match allocator.name:
        case "glibc" if host.glibc is not None and host.glibc < _GLIBC_TUNABLE_SINCE:
            return f"glibc {'.'.join(map(str, host.glibc))} cannot ask for huge pages, 2.35 could; {otherwise}"
        case "glibc" | "jemalloc":
            return None
        case "mimalloc" if _has_option(allocator):
            return None
        case "mimalloc":
            return f"this mimalloc does not ask for huge pages, version 3.4 does (cmeel-mimalloc); {otherwise}"
        case name:
            return f"{name} does not ask for huge pages, and the system gives none unasked; {otherwise}"


def _cannot_leave_out(allocator: _Allocator, host: Host) -> str | None:
    """Return why memory for which nobody asked would come in huge pages."""
    if allocator.name == "mimalloc" and _has_option(allocator):
        return "mimalloc asks for huge pages for all memory; choose never or always, or another allocator"
    if host.huge_pages == "always" and host.kernel < _EXCEPT_ADVISED_SINCE:
        kernel = ".".join(map(str, host.kernel))
        return f"under the system's mode always it needs Linux 6.18, and this is {kernel}; choose never or always"
    return None


def _asking(allocator: _Allocator, mode: str | None) -> dict[str, str]:
    """Return the variables by which an allocator asks for huge pages; none where the system gives them anyway."""
    if allocator.name == "mimalloc":
        return {"MIMALLOC_ALLOW_THP": "1"}  # 0 would switch them off for the process, under any mode
    if mode == "always":
        return {}
    variable, text = _ASKING[allocator.name]
    return {variable: text}


def _has_option(allocator: _Allocator) -> bool:
    """Return whether mimalloc has the option about huge pages, so asks for them unless it is told not to."""
    return any(_MIMALLOC_OPTION in Path(path).read_bytes() for path in allocator.paths if Path(path).is_file())
