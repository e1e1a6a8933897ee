"""Which CPUs are online, and which of them this process may use."""

import os
from collections.abc import Iterable
from pathlib import Path

from pinstripe.errors import MachineError
from pinstripe.machine.cgroups import cpuset
from pinstripe.machine.cpu_list import format_cpu_list, parse_cpu_list
from pinstripe.machine.tree import Tree

__all__ = ["CPU_DIRECTORY", "allowed_cpus", "allowed_nodes", "isolated_cpus", "online_cpus"]

CPU_DIRECTORY = "sys/devices/system/cpu"


def online_cpus(tree: Tree) -> tuple[int, ...]:
    """Return the online CPUs, ascending, at least one.

    Raises:
        MachineError: There is no CPU below the root, it cannot be read, the list of online CPUs is malformed, or the
            root lacks CPUs that it says are online.
    """
    present = _present_cpus(tree.root)
    try:
        listed = parse_cpu_list(tree.text(f"{CPU_DIRECTORY}/online") or "")
    except MachineError as error:
        raise MachineError(f"{tree.root / CPU_DIRECTORY / 'online'}: {error}") from error
    if not listed:
        # Old kernels and copies: only CPUs that can be switched off have a file of their own.
        online = [cpu for cpu in present if tree.number(f"{CPU_DIRECTORY}/cpu{cpu}/online") != 0]
        if not online:
            raise MachineError(f"no CPU is online in {tree.root / CPU_DIRECTORY}; give the root of a complete copy")
        return tuple(online)
    missing = set(listed).difference(present)
    if missing:
        message = f"{tree.root / CPU_DIRECTORY} lacks the online CPUs {format_cpu_list(missing)}; give a complete copy"
        raise MachineError(message)
    return listed


def allowed_cpus(tree: Tree, online: tuple[int, ...]) -> tuple[int, ...]:
    """Return the online CPUs that are in the affinity mask and in the cpuset of this process, ascending.

    Raises:
        MachineError: None is left, which no running process can have.
    """
    affinity = os.sched_getaffinity(0) if tree.is_live else _status(tree, "Cpus_allowed_list")
    limits = [limit for limit in (affinity, cpuset(tree, "cpus")) if limit is not None]
    allowed = tuple(cpu for cpu in online if all(cpu in limit for limit in limits))
    if not allowed:
        given = " and ".join(format_cpu_list(limit) for limit in limits)
        message = f"of the online CPUs {format_cpu_list(online)} in {tree.root} none is in {given}, which are allowed"
        raise MachineError(f"{message}; give a consistent copy")
    return allowed


def allowed_nodes(tree: Tree, nodes: Iterable[int]) -> tuple[int, ...]:
    """Return those nodes, of the ids given, whose memory this process may use."""
    with_memory = tree.cpu_list("sys/devices/system/node/has_memory")
    limits = (cpuset(tree, "mems"), _status(tree, "Mems_allowed_list"), with_memory or None)
    return tuple(node for node in nodes if all(node in limit for limit in limits if limit is not None))


def isolated_cpus(tree: Tree, online: tuple[int, ...]) -> tuple[int, ...]:
    """Return the online CPUs that `isolcpus` keeps the scheduler away from, ascending."""
    isolated = set(tree.cpu_list(f"{CPU_DIRECTORY}/isolated") or ())
    return tuple(cpu for cpu in online if cpu in isolated)


def _present_cpus(root: Path) -> list[int]:
    directory = root / CPU_DIRECTORY
    try:
        if not root.is_dir():
            raise MachineError(f"{root} does not exist or is not a directory; give the root of a machine, such as /")
        names = [path.name for path in directory.iterdir()]
    except FileNotFoundError as error:
        raise MachineError(f"{directory} does not exist; give the root of a machine, such as /") from error
    except OSError as error:
        raise MachineError(f"{directory} cannot be read: {error.strerror}; give a root that can be") from error
    present = [int(name[3:]) for name in names if name.startswith("cpu") and name[3:].isascii() and name[3:].isdigit()]
    if not present:
        raise MachineError(f"{directory} has no CPU in it; give the root of a machine, such as /")
    return sorted(present)


def _status(tree: Tree, key: str) -> frozenset[int] | None:
    """Return a list of `/proc/self/status`; None where it is absent or has another form."""
    for line in (tree.text("proc/self/status") or "").splitlines():
        name, _, value = line.partition(":")
        if name == key:
            try:
                return frozenset(parse_cpu_list(value)) or None
            except MachineError:
                return None
    return None
