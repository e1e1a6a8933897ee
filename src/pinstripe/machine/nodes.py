"""The NUMA nodes, and which CPUs their memory is near to. See `ABI/stable/sysfs-devices-node` of the kernel."""

import re
from collections.abc import Mapping, Sequence

from pinstripe.machine.description import Node
from pinstripe.machine.tree import Tree

__all__ = ["numa_nodes"]

_DIRECTORY = "sys/devices/system/node"
_GPU_DIRECTORY = "proc/driver/nvidia/gpus"
_Cpus = tuple[int, ...]
_Distances = Mapping[int, Mapping[int, int]]


def numa_nodes(tree: Tree, online: _Cpus) -> tuple[tuple[Node, ...], dict[int, int]]:
    """Return the NUMA nodes by id, and the node that each CPU belongs to (CPUs without one are absent).

    A kernel without NUMA has one node, 0, with all CPUs and all memory. Left out are nodes whose CPUs cannot be read;
    nodes whose CPUs an earlier node has already (NUMA emulation and broken firmware: which memory is near is not known
    then); and nodes that are the memory of an NVIDIA GPU. A node without CPUs of its own gets those that its memory is
    near to: of its initiators, else of the nearest nodes that have CPUs.
    """
    ids = tree.numbered(_DIRECTORY, "node")
    if not ids:
        memory_bytes = _memory_bytes(tree, "proc/meminfo")
        return (Node(id=0, cpus=online, memory_bytes=memory_bytes),), dict.fromkeys(online, 0)
    own = _without_overlaps(_own_cpus(tree, ids, online))
    for gpu_node in _gpu_nodes(tree):
        if not own.get(gpu_node):
            own.pop(gpu_node, None)
    distances = _distances(tree, ids)
    nodes = tuple(
        Node(
            id=node,
            cpus=cpus or _near_cpus(tree, node, own, distances),
            memory_bytes=_memory_bytes(tree, f"{_DIRECTORY}/node{node}/meminfo"),
            neighbours=_neighbours(node, own, distances),
        )
        for node, cpus in own.items()
    )
    return nodes, {cpu: node for node, cpus in own.items() for cpu in cpus}


def _own_cpus(tree: Tree, ids: Sequence[int], online: _Cpus) -> dict[int, _Cpus]:
    """Return the online CPUs that the kernel counts to each node, where it can be read."""
    own = {}
    for node in ids:
        cpus = tree.cpu_set(f"{_DIRECTORY}/node{node}/cpulist", f"{_DIRECTORY}/node{node}/cpumap")
        if cpus is not None:
            own[node] = tuple(sorted(set(cpus).intersection(online)))
    return own


def _without_overlaps(own: Mapping[int, _Cpus]) -> dict[int, _Cpus]:
    kept: dict[int, _Cpus] = {}
    seen: set[int] = set()
    for node, cpus in own.items():
        if seen.isdisjoint(cpus):
            kept[node] = cpus
            seen.update(cpus)
    return kept


def _gpu_nodes(tree: Tree) -> list[int]:
    """Return the nodes that the NVIDIA driver made of its GPUs' memory."""
    states = (tree.text(f"{_GPU_DIRECTORY}/{gpu}/numa_status") or "" for gpu in tree.names(_GPU_DIRECTORY))
    return [
        int(match[1])
        for state in states
        if (match := re.search(r"^Node:\s*(\d{1,9})\s*$", state, re.ASCII | re.MULTILINE))
    ]


def _near_cpus(tree: Tree, node: int, own: Mapping[int, _Cpus], distances: _Distances) -> _Cpus:
    """Return the CPUs that the memory of a node without any is nearest to."""
    near = [initiator for initiator in _initiators(tree, node) if own.get(initiator)]
    if not near:
        row = {other: distance for other, distance in distances[node].items() if own.get(other)}
        near = [other for other, distance in row.items() if distance == min(row.values())]
    return tuple(sorted({cpu for other in near for cpu in own[other]}))


def _initiators(tree: Tree, node: int) -> list[int]:
    """Return the nodes with the best access: class 1 is CPUs only, class 0 (before 5.10 the only one) devices too."""
    classes = (f"{_DIRECTORY}/node{node}/{access}/initiators" for access in ("access1", "access0"))
    return next((nodes for path in classes if (nodes := tree.numbered(path, "node"))), [])


def _distances(tree: Tree, ids: Sequence[int]) -> dict[int, dict[int, int]]:
    """Return the distance from each node to the others (10 is to itself), by id; empty rows where they are unknown."""
    table = {}
    for node in ids:
        words = (tree.text(f"{_DIRECTORY}/node{node}/distance") or "").strip("\0 \n").split(" ")
        # One column for each node, in the order of their ids.
        known = len(words) == len(ids) and all(word.isascii() and word.isdigit() for word in words)
        table[node] = (
            {other: int(word) for other, word in zip(ids, words, strict=True) if other != node} if known else {}
        )
    return table


def _neighbours(node: int, kept: Mapping[int, _Cpus], distances: _Distances) -> tuple[int, ...]:
    row = distances[node]
    return tuple(sorted((other for other in row if other in kept), key=lambda other: (row[other], other)))


def _memory_bytes(tree: Tree, path: str) -> int:
    match = re.search(r"MemTotal:\s*(\d{1,15}) kB", tree.text(path) or "", re.ASCII)
    return int(match[1]) * 1024 if match else 0
