"""A machine's value written as the kernel's files, for what reads a root."""

from collections.abc import Collection, Mapping
from pathlib import Path

from pinstripe.machine import Machine, format_cpu_list

__all__ = ["tree_files", "write_tree"]

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"
_PERIOD_US = 100_000
_DISTANCES = (10, 21)
"""To a node itself, and to the nearest other one; each further one is a little farther."""


def write_tree(machine: Machine, root: Path, extra: Mapping[str, str] | None = None) -> None:
    """Write a machine as a root that `read_machine` reads as that machine.

    Args:
        machine: The machine; its numbers of packages and caches have to be those of its cores.
        root: A directory; it may be absent.
        extra: Contents of further files, by path below the root.
    """
    for path, content in (tree_files(machine) | dict(extra or {})).items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def tree_files(machine: Machine) -> dict[str, str]:
    """Return the kernel's files that say what a machine's value says, by path below the root."""
    files = {f"{_CPU}/online": _list(machine.online), f"{_CPU}/isolated": _list(machine.isolated)}
    for core in machine.cores:
        for cpu in core.cpus:
            files[f"{_CPU}/cpu{cpu}/topology/thread_siblings_list"] = _list(core.cpus)
            if core.package is not None:
                files[f"{_CPU}/cpu{cpu}/topology/core_siblings_list"] = _list(machine.packages[core.package])
            if core.l3 is not None:
                files[f"{_CPU}/cpu{cpu}/cache/index3/level"] = "3\n"
                files[f"{_CPU}/cpu{cpu}/cache/index3/shared_cpu_list"] = _list(machine.l3[core.l3])
    return files | _kinds(machine) | _nodes(machine) | _modes(machine) | _limits(machine)


def _kinds(machine: Machine) -> dict[str, str]:
    names = {"performance": "cpu_core", "efficiency": "cpu_atom"}
    cpus = {kind: [cpu for core in machine.cores if core.kind == kind for cpu in core.cpus] for kind in names}
    return {f"sys/devices/{name}/cpus": _list(cpus[kind]) for kind, name in names.items() if all(cpus.values())}


def _nodes(machine: Machine) -> dict[str, str]:
    files = {f"{_NODE}/has_memory": _list([node.id for node in machine.nodes if node.memory_bytes])}
    for node in machine.nodes:
        files[f"{_NODE}/node{node.id}/cpulist"] = _list(node.cpus)
        files[f"{_NODE}/node{node.id}/meminfo"] = f"Node {node.id} MemTotal: {node.memory_bytes // 1024} kB\n"
        near, far = _DISTANCES
        ranks = {other: far + rank for rank, other in enumerate(node.neighbours)} | {node.id: near}
        files[f"{_NODE}/node{node.id}/distance"] = (
            " ".join(str(ranks.get(other.id, 99)) for other in machine.nodes) + "\n"
        )
    return files


def _modes(machine: Machine) -> dict[str, str]:
    total_bytes = sum(node.memory_bytes for node in machine.nodes)
    memory = f"MemTotal: {total_bytes // 1024} kB\nMemAvailable: {total_bytes // 1024 * 9 // 10} kB\n"
    name = f"model name : {machine.model_name}\n" if machine.model_name else ""
    flags = f"flags : {' '.join(machine.isa)}\n" if machine.isa else ""
    files = {"proc/meminfo": memory, "proc/cpuinfo": f"processor : 0\n{name}{flags}"}
    if machine.smt:
        files[f"{_CPU}/smt/control"] = f"{machine.smt}\n"
    if machine.thp:
        modes = (f"[{mode}]" if mode == machine.thp else mode for mode in ("always", "madvise", "never"))
        files["sys/kernel/mm/transparent_hugepage/enabled"] = " ".join(modes) + "\n"
    return files


def _limits(machine: Machine) -> dict[str, str]:
    status = f"Cpus_allowed_list:\t{_list(machine.allowed)}Mems_allowed_list:\t{_list(machine.allowed_nodes)}"
    quota = "max" if machine.cpu_quota is None else round(machine.cpu_quota * _PERIOD_US)
    return {
        "proc/self/status": status,
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": f"{quota} {_PERIOD_US}\n",
    }


def _list(numbers: Collection[int]) -> str:
    return f"{format_cpu_list(numbers)}\n"
