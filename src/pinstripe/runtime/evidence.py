"""Where a process really runs and lives, read from procfs: see `man 5 proc`."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from pinstripe.errors import ExecutionError
from pinstripe.machine import parse_cpu_list
from pinstripe.runtime.libraries import LoadedLibrary, loaded_allocators, loaded_threading_libraries, mapped_files
from pinstripe.runtime.procfs import read_status

__all__ = ["NodeMemory", "ProcessEvidence", "ThreadEvidence", "read_evidence", "stray_threads"]

_NODE_PAGES = re.compile(r" N(\d+)=(\d+)")
_ANONYMOUS_HUGE = " file=/anon_hugepage"  # how huge pages of MAP_HUGETLB are shown
_PAGE_KIB = re.compile(r" kernelpagesize_kB=(\d+)")
# Older kernels, and sandboxes that imitate one, lack some.
_OPTIONAL_IN_STATUS = {
    "thp_enabled": "THP_enabled",
    "voluntary_switches": "voluntary_ctxt_switches",
    "involuntary_switches": "nonvoluntary_ctxt_switches",
}
_Parsed = TypeVar("_Parsed")


class ThreadEvidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thread.

    Attributes:
        tid: Its id; that of the process for the main thread.
        name: Its name, at most 15 characters.
        cpus: CPUs it may run on, ascending; None where the kernel does not say (sandboxes that imitate one). A thread
            that was never pinned may list CPUs that are not online.
    """

    tid: int
    name: str
    cpus: tuple[int, ...] | None


class NodeMemory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Memory of a process on a NUMA node.

    Attributes:
        node: The node's id.
        anonymous_bytes: Heap, stacks and other memory without a file, which the process itself placed.
        file_bytes: Mapped files. They lie where the process that read them first, perhaps another one, put them.
    """

    node: int
    anonymous_bytes: int
    file_bytes: int


class ProcessEvidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a process runs and lives, at one moment.

    Attributes:
        pid: Its id.
        threads: All threads, by id.
        threading_libraries: OpenMP runtimes and TBB in its memory map.
        allocators: Allocators in its memory map: those that replace the C library's, or else that one.
        node_memory: Its memory by NUMA node; None where the kernel does not say.
        rss_bytes: Resident memory.
        pss_bytes: The same, shared pages counted in parts; None where the kernel does not say.
        anonymous_huge_bytes: Part of it in transparent huge pages; None where the kernel does not say.
        thp_enabled: Whether the process may have transparent huge pages; None where the kernel does not say.
        voluntary_switches: Times its living threads gave up a CPU to wait; None where the kernel does not say.
        involuntary_switches: Times they were taken off a CPU they would have used; None where it does not say.
        unread: Why something above is None, by attribute.
    """

    pid: int
    threads: tuple[ThreadEvidence, ...]
    threading_libraries: tuple[LoadedLibrary, ...]
    allocators: tuple[LoadedLibrary, ...]
    node_memory: tuple[NodeMemory, ...] | None
    rss_bytes: int
    pss_bytes: int | None
    anonymous_huge_bytes: int | None
    thp_enabled: bool | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    unread: dict[str, str]


def read_evidence(pid: int, root: Path = Path("/")) -> ProcessEvidence:
    """Read what the kernel says of a process. Threads that end meanwhile are left out.

    Args:
        pid: The process; it has to belong to the same user for its memory to be readable.
        root: Directory in whose `proc` to read.

    Raises:
        ExecutionError: The process is gone, or its memory map may not be read.
    """
    folder = root / "proc" / str(pid)
    unread: dict[str, str] = {}
    try:
        status = read_status(folder / "status")
        files = mapped_files((folder / "maps").read_text(errors="replace"))
        threads = _read_threads(folder / "task")
    except OSError as error:
        raise ExecutionError(f"cannot read the evidence of process {pid} ({error}); is it still running?") from error
    if not threads or status.get("State", "").startswith("Z"):
        raise ExecutionError(f"cannot read the evidence of process {pid}: it has ended")
    rollup = _read_or_note(folder / "smaps_rollup", _parse_rollup, unread, ("pss_bytes", "anonymous_huge_bytes"))
    unread |= {
        attribute: f"{folder / 'status'} has no {name}"
        for attribute, name in _OPTIONAL_IN_STATUS.items()
        if name not in status
    }
    return ProcessEvidence(
        pid=pid,
        threads=tuple(_thread(tid, of_thread) for tid, of_thread in sorted(threads.items())),
        threading_libraries=loaded_threading_libraries(files),
        allocators=loaded_allocators(files),
        node_memory=_read_or_note(folder / "numa_maps", _parse_numa_maps, unread, ("node_memory",)),
        rss_bytes=_kib(status.get("VmRSS", "0")),
        pss_bytes=rollup["Pss"] if rollup else None,
        anonymous_huge_bytes=rollup["AnonHugePages"] if rollup else None,
        thp_enabled=status["THP_enabled"] == "1" if "THP_enabled" in status else None,
        voluntary_switches=_total(threads.values(), _OPTIONAL_IN_STATUS["voluntary_switches"]),
        involuntary_switches=_total(threads.values(), _OPTIONAL_IN_STATUS["involuntary_switches"]),
        unread=unread,
    )


def stray_threads(evidence: ProcessEvidence, cpus: Collection[int]) -> tuple[ThreadEvidence, ...]:
    """Return the threads that may run outside of `cpus`, and those of which it is not known."""
    inside = set(cpus)
    return tuple(thread for thread in evidence.threads if thread.cpus is None or not inside.issuperset(thread.cpus))


def _read_threads(folder: Path) -> dict[int, dict[str, str]]:
    threads = {}
    for thread in folder.iterdir():
        try:
            threads[int(thread.name)] = read_status(thread / "status")
        except (FileNotFoundError, ProcessLookupError):  # it ended after it was listed
            continue
    return threads


def _thread(tid: int, status: dict[str, str]) -> ThreadEvidence:
    cpus = status.get("Cpus_allowed_list")
    return ThreadEvidence(tid=tid, name=status["Name"], cpus=None if cpus is None else parse_cpu_list(cpus))


def _total(statuses: Iterable[dict[str, str]], name: str) -> int | None:
    values = [status[name] for status in statuses if name in status]
    return sum(map(int, values)) if values else None


def _read_or_note(
    path: Path, parse: Callable[[str], _Parsed], unread: dict[str, str], attributes: Collection[str]
) -> _Parsed | None:
    try:
        return parse(path.read_text(errors="replace"))
    except OSError as error:
        unread.update(dict.fromkeys(attributes, f"{path}: {error.strerror}"))
        return None


def _parse_rollup(text: str) -> dict[str, int]:
    pairs = (line.partition(":") for line in text.splitlines()[1:])
    return {name: _kib(value) for name, _, value in pairs}


def _parse_numa_maps(text: str) -> tuple[NodeMemory, ...]:
    """Add up pages by node. Pages of hugetlbfs are counted in their own size, which `kernelpagesize_kB` gives."""
    anonymous: Counter[int] = Counter()
    of_files: Counter[int] = Counter()
    for line in text.splitlines():
        size = _PAGE_KIB.search(line)
        if size is None:  # an area without pages
            continue
        counter = of_files if " file=" in line and _ANONYMOUS_HUGE not in line else anonymous
        for node, pages in _NODE_PAGES.findall(line):
            counter[int(node)] += int(pages) * int(size[1]) * 1024
    return tuple(
        NodeMemory(node=node, anonymous_bytes=anonymous[node], file_bytes=of_files[node])
        for node in sorted(anonymous | of_files)
    )


def _kib(text: str) -> int:
    return int(text.split(maxsplit=1)[0]) * 1024
