"""Usable cores, grouped by what an instance should not leave."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from pinstripe.machine import Core, Machine
from pinstripe.placement.words import counted

__all__ = ["Group", "describe_node", "describe_sizes", "distances", "group_by_l3", "group_by_node"]


@dataclass(frozen=True)
class Group:
    """Cores of one NUMA node, or of one level-3 group in it.

    Attributes:
        node: Id of the node; None for cores that have none.
        parts: The cores by level-3 group, both by first CPU; one part where the group is a level-3 group itself.
    """

    node: int | None
    parts: tuple[tuple[Core, ...], ...]

    @property
    def size(self) -> int:
        """Number of cores."""
        return sum(map(len, self.parts))


def group_by_node(cores: Iterable[Core]) -> tuple[Group, ...]:
    """Group cores by node: ascending ids, cores without a node last."""
    by_node: dict[int | None, list[Core]] = {}
    for core in cores:
        by_node.setdefault(core.node, []).append(core)
    ordered = sorted(by_node.items(), key=lambda item: (item[0] is None, item[0] or 0))
    return tuple(Group(node, _l3_parts(members)) for node, members in ordered)


def group_by_l3(cores: Iterable[Core]) -> tuple[Group, ...]:
    """Group cores by level-3 cache within a node; where the cache is unknown by package, else by node."""
    return tuple(Group(group.node, (part,)) for group in group_by_node(cores) for part in group.parts)


def distances(machine: Machine, groups: tuple[Group, ...]) -> tuple[tuple[int, ...], ...]:
    """Say how far groups are from each other: `[i][j]` is the rank of j's node among the neighbours of i's.

    Where the kernel gives no distance, groups of one package count as near, then groups next to each other in the list,
    yet all of them as farther than any whose distance is known.
    """
    neighbours = {node.id: node.neighbours for node in machine.nodes}
    packages = [{core.package for part in group.parts for core in part} - {None} for group in groups]

    def rank(i: int, j: int) -> int:
        origin, target = groups[i].node, groups[j].node
        known = neighbours.get(origin, ()) if origin is not None else ()
        if target in known:
            return known.index(target)
        apart = 0 if packages[i] & packages[j] else len(groups)
        return len(machine.nodes) + apart + abs(i - j)

    indices = range(len(groups))
    return tuple(tuple(rank(i, j) for j in indices) for i in indices)


def describe_node(node: int | None) -> str:
    """Name a node, or the lack of one."""
    return "no node" if node is None else f"node {node}"


def describe_sizes(groups: tuple[Group, ...], noun: str) -> str:
    """Put the groups' sizes in words, largest first, such as `2 nodes of 24 cores and 1 node of 8 cores`."""
    sizes = sorted(Counter(group.size for group in groups).items(), reverse=True)
    return " and ".join(f"{counted(count, noun)} of {counted(size, 'core')}" for size, count in sizes)


def _l3_parts(cores: Iterable[Core]) -> tuple[tuple[Core, ...], ...]:
    parts: dict[Hashable, list[Core]] = {}
    for core in cores:
        key = ("l3", core.l3) if core.l3 is not None else ("package", core.package)
        parts.setdefault(key, []).append(core)
    return tuple(map(tuple, parts.values()))
