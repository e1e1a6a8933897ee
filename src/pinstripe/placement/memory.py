"""Which NUMA nodes should an instance's memory come from?"""

from collections.abc import Iterable

from pinstripe.machine import Core, Machine, format_cpu_list
from pinstripe.placement.groups import describe_node, group_by_node
from pinstripe.placement.layout import Layout
from pinstripe.placement.words import counted

__all__ = ["describe_crossings", "describe_detours", "memory_nodes"]


def memory_nodes(machine: Machine, cores: Iterable[Core]) -> tuple[int, ...]:
    """Choose the nodes for the memory of an instance on these cores.

    These are the cores' own nodes. One without memory, or whose memory this process may not use, is replaced by the
    nearest that has some (binding to such a node fails with EINVAL, `set_mempolicy(2)`).

    Returns:
        Node ids, ascending; empty when none is known.
    """
    usable = _usable(machine)
    if len(machine.nodes) == 1:
        return tuple(sorted(usable))
    nearest = {_nearest(machine, core.node, usable) for core in cores}
    return tuple(sorted(node for node in nearest if node is not None))


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
    usable = _usable(machine)
    homes = {core.node for cores in layout for core in cores if core.node is not None}
    sentences = []
    for node in sorted(homes - usable):
        lack = "has no memory" if node in machine.allowed_nodes else "has no memory that this process may use"
        nearest = _nearest(machine, node, usable)
        source = "no other is known" if nearest is None else f"its cores use that of node {nearest}, the nearest"
        sentences.append(f"Node {node} {lack}: {source}.")
    return sentences


def _usable(machine: Machine) -> set[int]:
    """Ids of the nodes that have memory for this process; no known size anywhere means that sizes are unknown."""
    unknown = not any(node.memory_bytes for node in machine.nodes)
    return {node.id for node in machine.nodes if unknown or node.memory_bytes} & set(machine.allowed_nodes)


def _nearest(machine: Machine, node: int | None, usable: set[int]) -> int | None:
    if node is None or node in usable:
        return node
    neighbours = next((known.neighbours for known in machine.nodes if known.id == node), ())
    return next((neighbour for neighbour in neighbours if neighbour in usable), None)
