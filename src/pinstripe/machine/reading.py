"""Read a machine from its kernel's files."""

from pathlib import Path

from pinstripe.machine import limits, nodes, processor, topology
from pinstripe.machine.cgroups import cpu_quota
from pinstripe.machine.core_kinds import core_kinds
from pinstripe.machine.description import Core, Machine
from pinstripe.machine.tree import Tree

__all__ = ["read_isa", "read_machine"]

_Groups = tuple[tuple[int, ...], ...]


def read_machine(root: Path = Path("/")) -> Machine:
    """Return what a host offers this process, from sysfs, procfs and control groups; no program is run.

    Args:
        root: `/` for this host, whose affinity mask then counts too; else a directory with a copy of another host's
            `proc` and `sys`, whose `proc/self` then stands for the process.

    Raises:
        MachineError: The root has no readable CPUs, or contradicts itself about online CPUs, allowed CPUs or cores.
            Any other file that is missing or malformed makes only what it says unknown.
    """
    tree = Tree(root)
    online = limits.online_cpus(tree)
    packages, l3 = topology.package_groups(tree, online), topology.l3_groups(tree, online)
    numa, home = nodes.numa_nodes(tree, online)
    model_name, isa = processor.name_and_flags(tree)
    package_of, l3_of = _index(packages), _index(l3)
    cores = topology.core_groups(tree, online)
    return Machine(
        online=online,
        allowed=limits.allowed_cpus(tree, online),
        isolated=limits.isolated_cpus(tree, online),
        cores=tuple(
            Core(
                cpus=cpus,
                package=package_of.get(cpus[0]),
                node=home.get(cpus[0]),
                l3=l3_of.get(cpus[0]),
                kind=kind,
            )
            for cpus, kind in zip(cores, core_kinds(tree, cores), strict=True)
        ),
        packages=packages,
        l3=l3,
        nodes=numa,
        allowed_nodes=limits.allowed_nodes(tree, [node.id for node in numa]),
        cpu_quota=cpu_quota(tree),
        model_name=model_name,
        isa=isa,
        thp=processor.thp_mode(tree),
        smt=processor.smt_state(tree),
    )


def _index(groups: _Groups) -> dict[int, int]:
    return {cpu: index for index, group in enumerate(groups) for cpu in group}


def read_isa(root: Path = Path("/")) -> tuple[str, ...]:
    """Return `Machine.isa` alone, without reading the rest; empty where it is unknown."""
    return processor.name_and_flags(Tree(root))[1]
