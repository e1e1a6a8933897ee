"""What this host has for knobs to choose from."""

import os
import platform
from pathlib import Path
from typing import Final

import msgspec

from pinstripe.machine import Machine
from pinstripe.runtime import InstalledLibrary, find_libraries, memory_policy_error

__all__ = ["Host", "read_host"]

_THP: Final = "sys/kernel/mm/transparent_hugepage/enabled"


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The machine, and the software that knobs need.

    Attributes:
        machine: What it offers.
        libraries: Allocators and OpenMP runtimes that can be preloaded.
        foreign: The same for other processors, which cannot.
        huge_pages: The system's mode of transparent huge pages: `always`, `madvise` or `never`; None without them.
        kernel: Version of the kernel, such as (6, 18).
        memory_policy_error: Why no process here can set a memory policy; None if it can.
        glibc: Version of the C library, such as (2, 36); None where it is another one.
    """

    machine: Machine
    libraries: tuple[InstalledLibrary, ...] = ()
    foreign: tuple[InstalledLibrary, ...] = ()
    huge_pages: str | None = None
    kernel: tuple[int, int] = (0, 0)
    memory_policy_error: str | None = None
    glibc: tuple[int, int] | None = None


def read_host(machine: Machine, root: Path = Path("/")) -> Host:
    """Return what a machine's host has.

    Args:
        machine: The machine.
        root: Where its `sys` and its libraries are.
    """
    name, version = platform.libc_ver()
    found = find_libraries(root)
    return Host(
        machine=machine,
        libraries=found.own,
        foreign=found.foreign,
        huge_pages=_chosen(root / _THP),
        kernel=_pair(os.uname().release),
        memory_policy_error=memory_policy_error(),
        glibc=_pair(version) if name == "glibc" else None,
    )


def _chosen(path: Path) -> str | None:
    """Return the word in brackets, which is how the kernel marks the mode in force."""
    try:
        return path.read_text().partition("[")[2].partition("]")[0] or None
    except OSError:
        return None


def _pair(version: str) -> tuple[int, int]:
    numbers = ["".join(filter(str.isdigit, part)) for part in version.partition("-")[0].split(".")]
    major, minor = (*numbers, "0", "0")[:2]
    return int(major or 0), int(minor or 0)
