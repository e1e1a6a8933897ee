"""Memory nodes and caches: what is near to which cores."""

from collections import Counter
from collections.abc import Collection

from pinstripe.diagnosis.finding import Finding
from pinstripe.diagnosis.observations import Observations
from pinstripe.errors import PlacementError
from pinstripe.machine import Core, Machine, format_cpu_list
from pinstripe.placement import Wish, place
from pinstripe.placement.cores import cut_to
from pinstripe.placement.words import counted, named_cpus

__all__ = ["caches", "far_memory", "memory_only_nodes", "memory_policy", "nodes"]


def nodes(seen: Observations) -> Finding | None:
    """Do our cores lie on several nodes?"""
    cores, homeless = _cores_by_node(seen.machine), _homeless(seen.machine)
    if not cores or (len(cores) == 1 and homeless):
        return None
    if len(cores) == 1:
        return Finding(
            subject="nodes",
            severity="good",
            title="All our cores are near to the same memory",
            seen=f"NUMA node {min(cores)}",
            certainty="certain",
        )
    return Finding(
        subject="nodes",
        severity="warning",
        title=f"Our cores lie on {len(cores)} NUMA nodes",
        seen="; ".join(f"node {node}: {counted(count, 'core')}" for node, count in sorted(cores.items()))
        + (f"; no known node: {counted(len(homeless), 'core')}" if homeless else ""),
        cost="One process over all of them reads much of its weights from another node's memory, over a slower link, "
        "and its threads wait for each other across sockets.",
        remedy=_one_a_node(seen.machine, cores),
        certainty="likely",
    )


def far_memory(seen: Observations) -> Finding | None:
    """Are there cores of ours whose own node has no memory for us?"""
    machine = seen.machine
    memory = {node.id: node.memory_bytes for node in machine.nodes}
    if not any(memory.values()):
        return None  # not a machine without memory, but a kernel or a copy that does not say
    cores = _cores_by_node(machine)
    empty = [node for node in cores if not memory[node]]
    refused = [node for node in cores if memory[node] and node not in machine.allowed_nodes]
    homeless = _homeless(machine)
    if not empty and not refused and not homeless:
        return None
    far = len(homeless) + sum(cores[node] for node in empty + refused)
    reasons = [f"no memory on {_named_nodes(empty)}"] if empty else []
    reasons += [f"the cpuset does not allow memory of {_named_nodes(refused)}"] if refused else []
    lost = [cpu for core in homeless for cpu in core.cpus]
    reasons += [f"no node is known for {named_cpus(lost)}"] if lost else []
    near = format_cpu_list({*machine.allowed_nodes, *refused})
    return Finding(
        subject="far-memory",
        severity="warning",
        title=f"{counted(far, 'core')} of ours without memory of their own",
        seen="; ".join(reasons),
        cost="All that they read and write comes from another node, most often over a slower link.",
        remedy=f"allow the nearest memory: `docker run --cpuset-mems {near}`"
        if refused
        else _remedy_for_none(machine, cores),
        certainty="certain" if refused else "likely",
    )


def memory_policy(seen: Observations) -> Finding | None:
    """May processes be kept to the memory of their node, where there are several?"""
    why = (seen.refused_knobs or {}).get("memory_policy", {}).get("preferred")
    if why is None or len(_cores_by_node(seen.machine)) == 1:
        return None
    reason, _, remedy = why.partition("; ")
    return Finding(
        subject="memory-policy",
        severity="note",
        title="Processes cannot be kept to the memory of their node",
        seen=reason,
        cost="Pages lie on the node of the thread that touches them first, and on another where that one is full.",
        remedy=remedy or None,
        certainty="certain",
    )


def memory_only_nodes(seen: Observations) -> Finding | None:
    """Are there nodes of memory without cores, such as CXL, high-bandwidth or a GPU's memory?"""
    machine = seen.machine
    homes = {core.node for core in machine.cores}
    alone = [node.id for node in machine.nodes if node.memory_bytes and node.id not in homes]
    usable = sorted(set(alone).intersection(machine.allowed_nodes))
    if not usable:
        return None
    return Finding(
        subject="memory-only-nodes",
        severity="note",
        title=f"{counted(len(usable), 'node')} of memory without cores",
        seen=_named_nodes(usable),
        cost="It can be slower than the cores' own memory (CXL, persistent, a GPU's) or faster (HBM); the kernel "
        "takes it "
        "when the near memory is full.",
        remedy="keep each process to its near node: `numactl --preferred NODE`; pinstripe does so where there are "
        "several",
        certainty="possible",
    )


def caches(seen: Observations) -> Finding | None:
    """Do our cores on one node have several level-3 caches?"""
    cores = cut_to(seen.machine.cores, seen.machine.allowed)
    groups = Counter((core.node, core.l3) for core in cores if core.l3 is not None)
    in_node = Counter(node for node, _ in groups)
    most = max(in_node.values(), default=0)
    if most <= 1 or max(groups.values()) == 1:
        return None
    return Finding(
        subject="caches",
        severity="note",
        title=f"{most} level-3 caches in one NUMA node",
        seen=f"{len(groups)} caches for {counted(len(cores), 'core')}, {max(groups.values())} cores at most share one",
        cost="Threads of one model on different caches exchange their results through memory.",
        remedy="instances within a cache: `pinstripe launch --strategy l3 -- COMMAND`",
        certainty="likely",
    )


def _cores_by_node(machine: Machine) -> Counter[int]:
    """Return how many cores, of which at least one CPU is allowed, each node has."""
    cores = cut_to(machine.cores, machine.allowed)
    return Counter(core.node for core in cores if core.node is not None)


def _homeless(machine: Machine) -> list[Core]:
    """Return our cores whose node the kernel does not say, such as one that is offline."""
    return [core for core in cut_to(machine.cores, machine.allowed) if core.node is None]


def _remedy_for_none(machine: Machine, cores: Counter[int]) -> str:
    if any(node.memory_bytes for node in machine.nodes if node.id in cores):
        return "prefer cores on nodes with memory; one without may be an empty slot, or have its memory on another node"
    return (
        "no choice among our cores helps, none has memory on its node; keep each process to the nearest that has: "
        "`numactl --preferred NODE`, as pinstripe does"
    )


def _one_a_node(machine: Machine, cores: Counter[int]) -> str:
    """Return how to start an instance on each node, if there is a way for these nodes."""
    commands = []
    try:
        place(machine, Wish(instances=len(cores), strategy="node"))
        commands.append(f"`pinstripe launch --instances {len(cores)} --strategy node -- COMMAND`")
    except PlacementError:
        commands.append("`pinstripe launch --instances NUMBER -- COMMAND`")
    with_memory = {node.id for node in machine.nodes if node.memory_bytes}.intersection(machine.allowed_nodes, cores)
    if with_memory:
        node = min(with_memory)
        commands.append(f"by hand `numactl --cpunodebind {node} --membind {node} COMMAND`, and so on")
    return f"at least one instance for each node: {'; '.join(commands)}"


def _named_nodes(nodes: Collection[int]) -> str:
    return f"node{'s' if len(nodes) > 1 else ''} {format_cpu_list(nodes)}"
