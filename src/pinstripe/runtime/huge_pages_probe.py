"""Whether this process gets transparent huge pages: Documentation/admin-guide/mm/transhuge.rst."""

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec

from pinstripe.errors import ExecutionError

__all__ = ["HugePagesObservation", "Pages", "observe_huge_pages"]

_PAGE_SIZE: Final = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
_SMAPS: Final = Path("/proc/self/smaps")
_LARGEST_PAGE_BYTES: Final = 32 << 20
"""Of those with 16 KiB small pages; with 64 KiB ones a huge page has 512 MiB (arm64), which would take too long."""
_LEAST_BLOCK_BYTES: Final = 40 << 20
"""More than what glibc lets its dynamic threshold grow to when a block is freed (32 MiB, mallopt(3)): a smaller block
would change how the engine is served from then on."""
_MADV_DONTNEED: Final = 4
_MADV_HUGEPAGE: Final = 14
_MADV_DONTDUMP: Final = 16
_MADV_DODUMP: Final = 17


Pages = Literal["huge", "scarce", "small"]
"""What an area of memory came in: huge pages; small ones although the kernel says that it may have huge ones, as none
is free in short or fragmented memory; small ones, because it may not have others."""


class HugePagesObservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the kernel gave for memory that was touched, as `AnonHugePages` and `THPeligible` of that memory say.

    Attributes:
        allocated: A large block of `malloc`.
        advised: Memory for which huge pages were asked (`MADV_HUGEPAGE`).
    """

    allocated: Pages
    advised: Pages


def observe_huge_pages() -> HugePagesObservation | None:
    """Try in this process what it gets; None on a kernel without transparent huge pages.

    Two areas are made, of each of which one byte is touched, and freed again: a block of the `malloc` that serves this
    process, and a mapping with the kernel's advice.

    Raises:
        ExecutionError: There is no memory for it, or huge pages are too large to try.
        OSError: The kernel does not tell.
    """
    try:
        size = int(_PAGE_SIZE.read_text())
    except FileNotFoundError:
        return None
    if size > _LARGEST_PAGE_BYTES:
        raise ExecutionError(f"huge pages have {size >> 20} MiB here, which is too large to try")
    with ExitStack() as areas:
        allocated, advised = _try(areas, size)
        if "scarce" in {allocated, advised}:
            allocated, advised = _try(areas, size)  # of other addresses: the first areas are still held
    return HugePagesObservation(allocated=allocated, advised=advised)


def _try(areas: ExitStack, size: int) -> tuple[Pages, Pages]:
    """Return what an allocated area and an advised one got; they are freed when `areas` is left."""
    allocated = areas.enter_context(_allocated(size))
    advised = areas.enter_context(_advised(size))
    for address in (allocated, advised):
        ctypes.c_char.from_address(address).value = b"\1"
    pages = _read_pages({allocated, advised})
    return pages[allocated], pages[advised]


@contextmanager
def _allocated(size: int) -> Iterator[int]:
    """Yield the address of an untouched, aligned huge page in a block of malloc.

    Advice that concerns core dumps only makes it a mapping of its own meanwhile, so that it is counted alone.
    """
    library = ctypes.CDLL(None, use_errno=True)  # the global symbols: a preloaded allocator's, if there is one
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def advise(advice: int) -> None:
        if library.madvise(address, size, advice) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    block = library.malloc(max(_LEAST_BLOCK_BYTES, 2 * size))
    if block is None:
        raise ExecutionError("malloc has no memory left to try huge pages with")
    address = _round_up(block, size)
    try:
        advise(_MADV_DONTNEED)  # the block may have been used before, in pages of whatever kind
        advise(_MADV_DONTDUMP)
        yield address
    finally:
        advise(_MADV_DODUMP)
        library.free(block)


@contextmanager
def _advised(size: int) -> Iterator[int]:
    """Yield the address of an untouched, aligned huge page for which huge pages are asked."""
    with mmap.mmap(-1, 2 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as mapping:
        start = ctypes.c_char.from_buffer(mapping)
        address = _round_up(ctypes.addressof(start), size)
        mapping.madvise(_MADV_HUGEPAGE, address - ctypes.addressof(start), size)
        del start  # a mapping that is referred to cannot be closed
        yield address


def _round_up(address: int, size: int) -> int:
    return -(-address // size) * size


def _read_pages(addresses: set[int]) -> dict[int, Pages]:
    """Return the pages of the mappings that begin there, from `/proc/self/smaps`: see proc_pid_smaps(5).

    It is read no further than needed, since the kernel walks all pages of what is read.

    Raises:
        ExecutionError: The kernel does not list them, or not how many are huge.
    """
    starts = {b"%08x-" % address: address for address in addresses}
    found: dict[int, Pages] = {}
    address: int | None = None
    fields: dict[bytes, bytes] = {}
    with _SMAPS.open("rb") as lines:
        for line in lines:
            name, _, value = line.partition(b":")
            if name == b"VmFlags":  # the last line of a mapping
                if address is not None and b"AnonHugePages" in fields:
                    found[address] = _pages(fields)
                if found.keys() == addresses:
                    return found
                address, fields = None, {}
            elif address is not None:
                fields[name] = value
            elif (start := line.partition(b"-")[0] + b"-") in starts:
                address = starts[start]
    raise ExecutionError(f"{_SMAPS} does not list the memory that was tried, or not its huge pages")


def _pages(fields: dict[bytes, bytes]) -> Pages:
    if fields[b"AnonHugePages"].split()[0] != b"0":
        return "huge"
    return "scarce" if fields.get(b"THPeligible", b"").strip() == b"1" else "small"
