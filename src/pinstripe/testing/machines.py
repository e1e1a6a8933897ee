"""Known machines as values, built from published facts: sockets, nodes, cores, threads, how the kernel numbers them."""

from typing import Literal

from pinstripe.machine import Core, Machine, Node

__all__ = ["c5_metal", "container_2cpu", "epyc_7742_nps4", "epyc_7763_nps4", "hybrid_1370p", "uniform", "xeon_8380"]

Numbering = Literal["split", "adjacent"]

_GIB = 1 << 30


def uniform(
    *,
    packages: int = 1,
    nodes_per_package: int = 1,
    cores_per_node: int = 4,
    smt: int = 1,
    numbering: Numbering = "split",
    cores_per_l3: int | None = None,
    memory_bytes_per_node: int = 64 * _GIB,
    cpu_quota: float | None = None,
) -> Machine:
    """Return a machine of equal parts, with everything allowed.

    Args:
        packages: Sockets, at least 1.
        nodes_per_package: NUMA nodes of each socket, at least 1.
        cores_per_node: Physical cores of each node, at least 1.
        smt: Hardware threads of each core, at least 1.
        numbering: `split` counts the first threads of all cores, then the second ones, as on most bare metal;
            `adjacent` counts the threads of a core one after the other, as in most virtual machines.
        cores_per_l3: Cores that share a level-3 cache, a divisor of `cores_per_node`; None for all of a package.
        memory_bytes_per_node: Memory of each node.
        cpu_quota: CPUs' worth of time that is granted; None without limit.
    """
    node_count = packages * nodes_per_package
    core_count = node_count * cores_per_node
    cores_per_package = nodes_per_package * cores_per_node
    cores_per_l3 = cores_per_l3 or cores_per_package

    def cpus_of(core: int) -> tuple[int, ...]:
        if numbering == "split":
            return tuple(core + thread * core_count for thread in range(smt))
        return tuple(core * smt + thread for thread in range(smt))

    def groups_of(size: int) -> tuple[tuple[int, ...], ...]:
        starts = range(0, core_count, size)
        return tuple(tuple(sorted(cpu for core in range(s, s + size) for cpu in cpus_of(core))) for s in starts)

    online = tuple(range(core_count * smt))
    return Machine(
        online=online,
        allowed=online,
        cores=tuple(
            Core(
                cpus=cpus_of(core),
                package=core // cores_per_package,
                node=core // cores_per_node,
                l3=core // cores_per_l3,
                kind="performance",
            )
            for core in range(core_count)
        ),
        packages=groups_of(cores_per_package),
        l3=groups_of(cores_per_l3),
        nodes=tuple(
            Node(
                id=node,
                cpus=cpus,
                memory_bytes=memory_bytes_per_node,
                neighbours=_neighbours(node, node_count, nodes_per_package),
            )
            for node, cpus in enumerate(groups_of(cores_per_node))
        ),
        allowed_nodes=tuple(range(node_count)),
        cpu_quota=cpu_quota,
        smt="on" if smt > 1 else "notsupported",
    )


def c5_metal() -> Machine:
    """Return an Amazon EC2 c5.metal: 2 Xeon Platinum 8275CL of 24 cores, 192 GiB; node 0 is CPUs 0-23,48-71."""
    return uniform(packages=2, cores_per_node=24, smt=2, memory_bytes_per_node=96 * _GIB)


def xeon_8380() -> Machine:
    """Return 2 Xeon Platinum 8380 (Ice Lake) of 40 cores with hyper-threading: 160 CPUs; node 0 is 0-39,80-119."""
    return uniform(packages=2, cores_per_node=40, smt=2, memory_bytes_per_node=256 * _GIB)


def epyc_7742_nps4() -> Machine:
    """Return one EPYC 7742 (Zen 2), 64 cores in 4 NUMA nodes (NPS4); 4 cores share a level-3 cache."""
    return uniform(nodes_per_package=4, cores_per_node=16, smt=2, cores_per_l3=4)


def epyc_7763_nps4() -> Machine:
    """Return one EPYC 7763 (Zen 3), 64 cores in 4 NUMA nodes (NPS4); 8 cores share a level-3 cache."""
    return uniform(nodes_per_package=4, cores_per_node=16, smt=2, cores_per_l3=8)


def container_2cpu() -> Machine:
    """Return a container limited to 2 CPUs' worth of time that sees all 8 CPUs (4 cores, 2 threads) of its host."""
    return uniform(cores_per_node=4, smt=2, numbering="adjacent", memory_bytes_per_node=16 * _GIB, cpu_quota=2.0)


def hybrid_1370p() -> Machine:
    """Return a Core i7-1370P: 6 performance cores of 2 threads (CPUs 0-11) and 8 efficiency cores (12-19)."""
    shared = {"package": 0, "node": 0, "l3": 0}
    performance = (Core(cpus=(cpu, cpu + 1), kind="performance", **shared) for cpu in range(0, 12, 2))
    efficiency = (Core(cpus=(cpu,), kind="efficiency", **shared) for cpu in range(12, 20))
    online = tuple(range(20))
    return Machine(
        online=online,
        allowed=online,
        cores=(*performance, *efficiency),
        packages=(online,),
        l3=(online,),
        nodes=(Node(id=0, cpus=online, memory_bytes=32 * _GIB),),
        allowed_nodes=(0,),
        model_name="13th Gen Intel(R) Core(TM) i7-1370P",
        smt="on",
    )


def _neighbours(node: int, node_count: int, nodes_per_package: int) -> tuple[int, ...]:
    """Return the nodes of the same package, then all others."""
    package = node // nodes_per_package
    others = (other for other in range(node_count) if other != node)
    return tuple(sorted(others, key=lambda other: (other // nodes_per_package != package, other)))
