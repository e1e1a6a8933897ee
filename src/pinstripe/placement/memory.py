"""Which NUMA nodes should an instance's memory come from?"""

from collections.abc import Iterable

from pinstripe.machine import Core, Machine, format_cpu_list
from pinstripe.placement.groups import describe_node, group_by_node
from pinstripe.placement.layout import Layout
from pinstripe.placement.words import counted

__all__ = ["describe_crossings", "describe_detours", "memory_nodes", "nodes_with_memory"]


def memory_nodes(machine: Machine, cores: Iterable[Core]) -> tuple[int, ...]:
    """Choose the nodes for the memory of an instance on these cores.

    These are the cores' own nodes. One without memory, or whose memory this process may not use, is replaced by the
    nearest that has some (binding to such a node fails with EINVAL, `set_mempolicy(2)`); where no distance is known, by
    those of the same package, else by all that have some.

    Returns:
        Node ids, ascending; empty when none is known.
    """
    usable = nodes_with_memory(machine)
    if len(machine.nodes) == 1:
        return tuple(sorted(usable))
    homes = {core.node for core in cores if core.node is not None}
    return tuple(sorted({source for home in homes for source in _sources(machine, home, usable)[0]}))


def describe_crossings(machine: Machine, layout: Layout) -> list[str]:
    """Say which instances cross nodes."""
    sentences = []
    for number, cores in enumerate(layout):
        groups = group_by_node(cores)
        if len(groups) > 1:
            names = ", ".join(describe_node(group.node) for group in groups)
            nodes = memory_nodes(machine, cores)
            memory = f"; its memory is interleaved over nodes {format_cpu_list(nodes)}" if len(nodes) > 1 else ""
            sentences.append(f"Instance {number} ({counted(len(cores), 'core')}) crosses nodes ({names}){memory}.")
    return sentences


def describe_detours(machine: Machine, layout: Layout) -> list[str]:
    """Say for each node that cannot give its cores memory where that comes from instead."""
    usable = nodes_with_memory(machine)
    homes = {core.node for cores in layout for core in cores if core.node is not None}
    sizes = {node.id: node.memory_bytes for node in machine.nodes}
    sentences = []
    for node in sorted(homes - usable):
        is_empty = any(sizes.values()) and not sizes.get(node)  # else the size is not known, or it may not be used
        lack = "has no memory" if is_empty else "has no memory that this process may use"
        sources, why = _sources(machine, node, usable)
        named = f"node{'s' if len(sources) > 1 else ''} {format_cpu_list(sources)}"
        source = f"its cores use that of {named}, {why}" if sources else "no other is known"
        sentences.append(f"Node {node} {lack}: {source}.")
    return sentences


def nodes_with_memory(machine: Machine) -> set[int]:
    """Return the ids of the nodes that have memory for this process; where no size is known, all allowed ones."""
    unknown = not any(node.memory_bytes for node in machine.nodes)
    return {node.id for node in machine.nodes if unknown or node.memory_bytes} & set(machine.allowed_nodes)


def _sources(machine: Machine, home: int, usable: set[int]) -> tuple[set[int], str]:
    """Return the nodes that give the cores of a node memory, and how they were chosen."""
    if home in usable:
        return {home}, "their own"
    neighbours = next((node.neighbours for node in machine.nodes if node.id == home), ())
    nearest = next((neighbour for neighbour in neighbours if neighbour in usable), None)
    if nearest is not None:
        return {nearest}, "the nearest"
    beside = {node.id for node in machine.nodes if node.id in usable and _share_package(machine, node.id, home)}
    if beside:
        return beside, "of the same package (which is nearest is not known)"
    return usable, "all that have some (which is nearest is not known)"


def _share_package(machine: Machine, one: int, other: int) -> bool:
    """Return whether CPUs of both nodes are in one package."""
    packages = {
        node.id: {index for index, package in enumerate(machine.packages) if set(node.cpus).intersection(package)}
        for node in machine.nodes
    }
    return bool(packages.get(one, set()) & packages.get(other, set()))
