"""The known machines that are shipped for tests, against published facts and real dumps."""

from pathlib import Path
from typing import Any

import pytest

from pinstripe.machine import Machine, parse_cpu_list, read_machine
from pinstripe.testing import machines

EVERY = [
    machines.c5_metal(),
    machines.xeon_8380(),
    machines.epyc_7742_nps4(),
    machines.epyc_7763_nps4(),
    machines.container_2cpu(),
    machines.hybrid_1370p(),
    machines.uniform(packages=2, nodes_per_package=2, cores_per_node=3, smt=4, numbering="adjacent", cores_per_l3=1),
]


@pytest.mark.parametrize(
    ("machine", "cpus", "cores", "nodes", "l3"),
    [
        (machines.c5_metal(), 96, 48, 2, 2),
        (machines.xeon_8380(), 160, 80, 2, 2),
        (machines.epyc_7742_nps4(), 128, 64, 4, 16),
        (machines.epyc_7763_nps4(), 128, 64, 4, 8),
        (machines.container_2cpu(), 8, 4, 1, 1),
        (machines.hybrid_1370p(), 20, 14, 1, 1),
    ],
)
def test_published_sizes(machine: Machine, cpus: int, cores: int, nodes: int, l3: int) -> None:
    """Threads, cores, nodes and caches are as many as the vendors publish."""
    assert (len(machine.online), len(machine.cores), len(machine.nodes), len(machine.l3)) == (cpus, cores, nodes, l3)


def test_numbering() -> None:
    """CPUs are numbered as these machines' kernels number them."""
    assert machines.c5_metal().nodes[0].cpus == parse_cpu_list("0-23,48-71")
    assert machines.xeon_8380().packages[1] == parse_cpu_list("40-79,120-159")
    assert machines.container_2cpu().cores[1].cpus == (2, 3)
    assert machines.epyc_7742_nps4().l3[1] == parse_cpu_list("4-7,68-71")


def test_neighbours_are_in_the_package_first() -> None:
    """Nodes of the same package are nearer than those of another."""
    machine = machines.uniform(packages=2, nodes_per_package=2)
    assert [node.neighbours for node in machine.nodes] == [(1, 2, 3), (0, 2, 3), (3, 0, 1), (2, 0, 1)]


@pytest.mark.parametrize("machine", EVERY)
def test_parts_fit_together(machine: Machine) -> None:
    """Packages, nodes, caches and cores each cover all CPUs once, and cores lie in what they name."""
    nodes = [node.cpus for node in machine.nodes]
    for groups in (machine.packages, machine.l3, nodes, [core.cpus for core in machine.cores]):
        assert sorted(cpu for group in groups for cpu in group) == list(machine.online)
        assert list(groups) == sorted(groups)
    for core in machine.cores:
        assert core.package is not None
        assert core.l3 is not None
        assert core.node is not None
        holders = (machine.packages[core.package], machine.l3[core.l3], machine.nodes[core.node].cpus)
        assert all(set(core.cpus) <= set(holder) for holder in holders)


def test_hybrid_is_like_the_real_one(dumps: dict[str, tuple[Path, dict[str, Any]]]) -> None:
    """The i7-1370P has the cores, kinds, caches and name of a real one."""
    real = read_machine(dumps["hwloc-20em64t-hybrid-1p6c2t+2ca4co1t"][0])
    known = machines.hybrid_1370p()
    for attribute in ("online", "cores", "packages", "l3", "allowed_nodes", "model_name", "smt"):
        assert getattr(known, attribute) == getattr(real, attribute)
