"""How much memory there is for this process, and how much of it is free."""

import re
from pathlib import Path

import msgspec

from pinstripe.machine.cgroups import own_groups
from pinstripe.machine.tree import Tree

__all__ = ["Memory", "read_memory"]

# Version 1 says "no limit" by the largest multiple of the page size that a signed 64-bit number holds.
_UNLIMITED_BYTES = 1 << 62


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Memory of the host and of this process' control groups.

    Attributes:
        total_bytes: Memory of the host; None where unknown.
        available_bytes: What can be had without swapping (`MemAvailable`), or less where a control group leaves less;
            None where unknown.
        limit_bytes: The tightest limit of the control groups; None without one.
    """

    total_bytes: int | None = None
    available_bytes: int | None = None
    limit_bytes: int | None = None


def read_memory(root: Path = Path("/")) -> Memory:
    """Return the memory that this process can have.

    Args:
        root: As for `read_machine`. What is missing or malformed is unknown.
    """
    tree = Tree(root)
    meminfo = tree.text("proc/meminfo") or ""
    total, available = _kilobytes(meminfo, "MemTotal"), _kilobytes(meminfo, "MemAvailable")
    directories = [directory for chain in own_groups(tree, "memory") for directory in chain]
    limits = {directory: limit for directory in directories if (limit := _limit(tree, directory)) is not None}
    rests = [limit - used for directory, limit in limits.items() if (used := _used(tree, directory)) is not None]
    if available is not None:
        rests.append(available)
    return Memory(
        total_bytes=total,
        available_bytes=max(0, min(rests)) if rests else None,
        limit_bytes=min(limits.values(), default=None),
    )


def _kilobytes(meminfo: str, name: str) -> int | None:
    match = re.search(rf"^{name}:\s*(\d{{1,18}}) kB", meminfo, re.MULTILINE | re.ASCII)
    return int(match[1]) * 1024 if match else None


def _limit(tree: Tree, directory: str) -> int | None:
    limit = tree.number(f"{directory}/memory.max")
    if limit is None:
        limit = tree.number(f"{directory}/memory.limit_in_bytes")
    return None if limit is None or limit > _UNLIMITED_BYTES else limit


def _used(tree: Tree, directory: str) -> int | None:
    """Return what a group uses, without the page cache that the kernel would drop first."""
    used = tree.number(f"{directory}/memory.current")
    if used is None:
        used = tree.number(f"{directory}/memory.usage_in_bytes")
    if used is None:
        return None
    stat = tree.text(f"{directory}/memory.stat") or ""
    # Version 1 counts the group alone under the plain name, and with its children under `total_`.
    match = re.search(r"^total_inactive_file (\d{1,18})$", stat, re.MULTILINE | re.ASCII)
    match = match or re.search(r"^inactive_file (\d{1,18})$", stat, re.MULTILINE | re.ASCII)
    return used - (int(match[1]) if match else 0)
