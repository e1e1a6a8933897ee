"""How the online CPUs share cores, packages and level-3 caches.

The kernel answers for each CPU with the set of CPUs it shares something with; one answer serves the whole set. The ids
beside them (`core_id`, `physical_package_id`) are neither unique nor dense and are not read. See
`Documentation/admin-guide/cputopology.rst` and `ABI/testing/sysfs-devices-system-cpu` of the kernel.
"""

from collections.abc import Callable, Iterable

from pinstripe.errors import MachineError
from pinstripe.machine.limits import CPU_DIRECTORY
from pinstripe.machine.tree import Tree

__all__ = ["core_groups", "l3_groups", "package_groups"]

_Group = tuple[int, ...]
_L3 = 3
# The newer name first (Linux 5.3); each is there as a mask and, with `_list`, as a list.
_SIBLING_FILES = ("core_cpus", "thread_siblings")
_PACKAGE_FILES = ("package_cpus", "core_siblings")


def core_groups(tree: Tree, online: _Group) -> tuple[_Group, ...]:
    """Return the sibling CPUs of each core, by first CPU; a CPU without sibling information is a core of its own.

    Raises:
        MachineError: Sibling information is malformed, or a CPU is in two cores or no sibling of itself: two threads
            could be put on one core.
    """
    groups = _partition(online, lambda cpu: _siblings(tree, cpu, online))
    if groups is None:
        message = f"the sibling lists in {tree.root / CPU_DIRECTORY}/cpu*/topology contradict each other"
        raise MachineError(f"{message}; give a consistent copy")
    return groups


def package_groups(tree: Tree, online: _Group) -> tuple[_Group, ...]:
    """Return the CPUs of each package, by first CPU; empty where the kernel's answers are no partition."""
    return _partition(online, lambda cpu: _topology(tree, cpu, online, *_PACKAGE_FILES)) or ()


def l3_groups(tree: Tree, online: _Group) -> tuple[_Group, ...]:
    """Return the CPUs of each level-3 cache, by first CPU; empty where the kernel's answers are no partition."""
    return _partition(online, lambda cpu: _l3_of(tree, cpu, online)) or ()


def _partition(online: Iterable[int], group_of: Callable[[int], _Group | None]) -> tuple[_Group, ...] | None:
    """Return the distinct groups, asking once for each; None where a CPU is in two, or outside of its own."""
    groups: list[_Group] = []
    seen: set[int] = set()
    for cpu in online:
        if cpu in seen:
            continue
        group = group_of(cpu)
        if group is None:
            continue
        if cpu not in group or not seen.isdisjoint(group):
            return None
        groups.append(group)
        seen.update(group)
    return tuple(groups)


def _siblings(tree: Tree, cpu: int, online: _Group) -> _Group:
    siblings = _topology(tree, cpu, online, *_SIBLING_FILES)
    if siblings is not None:
        return siblings
    directory = f"{CPU_DIRECTORY}/cpu{cpu}/topology"
    for name in (name for stem in _SIBLING_FILES for name in (f"{stem}_list", stem)):
        content = (tree.text(f"{directory}/{name}") or "").strip("\0 \n")
        if content:
            path = tree.root / directory / name
            raise MachineError(f"{path} holds {content[:80]!r}, no set of online CPUs; give a consistent copy")
    return (cpu,)


def _topology(tree: Tree, cpu: int, online: _Group, *names: str) -> _Group | None:
    directory = f"{CPU_DIRECTORY}/cpu{cpu}/topology"
    paths = (f"{directory}/{name}" for name in names)
    return next((group for path in paths if (group := _shared(tree, f"{path}_list", path, online))), None)


def _l3_of(tree: Tree, cpu: int, online: _Group) -> _Group | None:
    directory = f"{CPU_DIRECTORY}/cpu{cpu}/cache"
    # Levels come in ascending order: the last index is the level-3 cache, or a level beyond.
    for index in reversed(tree.numbered(directory, "index")):
        if tree.number(f"{directory}/index{index}/level") == _L3:
            cache = f"{directory}/index{index}"
            return _shared(tree, f"{cache}/shared_cpu_list", f"{cache}/shared_cpu_map", online)
    return None


def _shared(tree: Tree, list_path: str, mask_path: str, online: _Group) -> _Group | None:
    cpus = tree.cpu_set(list_path, mask_path)
    return tuple(sorted(set(cpus).intersection(online))) or None if cpus else None
