"""Real machines, read from their dumps and compared with hwloc's answer and with published facts."""

from pathlib import Path
from typing import Any

import pytest

from pinstripe.machine import Machine, read_machine

Dumps = dict[str, tuple[Path, dict[str, Any]]]

# hwloc lists no cores where the kernel says nothing about threads; here each CPU is then a core of its own.
WITHOUT_SIBLINGS = "hwloc-4fake-4gr1nu1pu"


def answer_of(machine: Machine) -> dict[str, Any]:
    """Return what a machine says, in the form of hwloc's answers."""
    return {
        "online": list(machine.online),
        "allowed": list(machine.allowed),
        "allowed_nodes": list(machine.allowed_nodes),
        "cores": [list(core.cpus) for core in machine.cores],
        "packages": [list(cpus) for cpus in machine.packages],
        "l3": [list(cpus) for cpus in machine.l3],
        "numa": {str(node.id): list(node.cpus) for node in machine.nodes},
        "numa_memory_bytes": {str(node.id): node.memory_bytes for node in machine.nodes},
    }


def machine_of(dumps: Dumps, name: str) -> Machine:
    """Return the machine of a dump."""
    return read_machine(dumps[name][0])


def test_all_agree_with_hwloc(dumps: Dumps) -> None:
    """Every dump is read as hwloc reads it: CPUs, limits, cores, packages, caches, nodes and their memory."""
    differences: dict[tuple[str, str], object] = {}
    for name, (root, oracle) in dumps.items():
        expected = {key: value for key, value in oracle.items() if key not in {"root", "oracle"}}
        if name == WITHOUT_SIBLINGS:
            assert expected["cores"] == []
            expected["cores"] = [[0], [1], [2], [3]]
        answer = answer_of(read_machine(root))
        differences |= {(name, key): answer.get(key) for key in expected if answer.get(key) != expected[key]}
    assert differences == {}
    assert len(dumps) >= 19


def test_groups_are_consistent(dumps: Dumps) -> None:
    """On every dump a core lies in the package, cache and node it names, and everything is in ascending order."""
    for name in dumps:
        machine = machine_of(dumps, name)
        nodes = {node.id: node for node in machine.nodes}
        assert sorted(cpu for core in machine.cores for cpu in core.cpus) == list(machine.online)
        assert list(nodes) == sorted(nodes)
        for groups in (machine.packages, machine.l3, [core.cpus for core in machine.cores]):
            assert list(groups) == sorted(groups)
        for core in machine.cores:
            assert core.package is None or set(core.cpus) <= set(machine.packages[core.package])
            assert core.l3 is None or set(core.cpus) <= set(machine.l3[core.l3])
            assert core.node is None or set(core.cpus) <= set(nodes[core.node].cpus)
        for node in machine.nodes:
            assert set(node.neighbours) <= nodes.keys() - {node.id}


@pytest.mark.parametrize(
    ("name", "efficient"),
    [
        # Intel's specification of the i7-1370P: 6 performance cores with 2 threads, 8 efficiency cores with one.
        ("hwloc-20em64t-hybrid-1p6c2t+2ca4co1t", set(range(12, 20))),
        # 4 performance and 8 efficiency cores: the kernel's own lists in the dump are cpu_core 0-7, cpu_atom 8-15.
        ("nri-sample1-hybrid", set(range(8, 16))),
        # Arm: Cortex-A510 is the high-efficiency core (0-2), A710, A715 and X3 are performance cores.
        ("lscpu-arm-A510-A710-A715-X3", {0, 1, 2}),
    ],
)
def test_hybrid_kinds(dumps: Dumps, name: str, efficient: set[int]) -> None:
    """On hybrid CPUs the efficiency cores are those of the published specification."""
    cores = machine_of(dumps, name).cores
    assert {cpu for core in cores if core.kind == "efficiency" for cpu in core.cpus} == efficient


def test_other_machines_have_one_kind(dumps: Dumps) -> None:
    """No server or desktop with equal cores is taken for a hybrid."""
    hybrid = {name for name in dumps if any(c.kind == "efficiency" for c in machine_of(dumps, name).cores)}
    assert hybrid == {"hwloc-20em64t-hybrid-1p6c2t+2ca4co1t", "nri-sample1-hybrid", "lscpu-arm-A510-A710-A715-X3"}


def test_neighbours_of_sparse_nodes(dumps: Dumps) -> None:
    """Neighbours are ordered by the distance table, whose columns are the nodes that there are."""
    # The row of node 33 is 22 16 16 10 16 16 22 22, for nodes 0, 1, 2, 33, 34, 45, 72 and 73.
    nodes = {node.id: node for node in machine_of(dumps, "hwloc-48amd64-4pa2n6c-sparse").nodes}
    assert nodes[33].neighbours == (1, 2, 34, 45, 0, 72, 73)


def test_memoryless_node_is_next_to_its_memory(dumps: Dumps) -> None:
    """A core on a node without memory finds the nearest memory among the neighbours: node 5 at 11 from node 0."""
    machine = machine_of(dumps, "hwloc-fakememinitiators-1np2c+1npp+gi")
    home = next(node for node in machine.nodes if node.id == machine.cores[0].node)
    assert (home.id, home.memory_bytes) == (0, 0)
    assert next(node for node in home.neighbours if node in machine.allowed_nodes) == 5


@pytest.mark.parametrize(
    ("name", "model_name", "flags"),
    [
        ("hwloc-20em64t-hybrid-1p6c2t+2ca4co1t", "13th Gen Intel(R) Core(TM) i7-1370P", {"avx2", "avx_vnni"}),
        ("lscpu-arm-A510-A710-A715-X3", None, {"asimd", "asimddp"}),
        ("hwloc-2arm-2c", "ARMv7 Processor rev 1 (v7l)", {"neon", "vfpv3"}),
        ("hwloc-nvidiagpunumanodes", "POWER9, altivec supported", set()),
    ],
)
def test_processor(dumps: Dumps, name: str, model_name: str | None, flags: set[str]) -> None:
    """Name and instruction sets are found on x86, new and old Arm, and POWER."""
    machine = machine_of(dumps, name)
    assert machine.model_name == model_name
    assert flags <= set(machine.isa)
    assert list(machine.isa) == sorted(machine.isa)


def test_smt_state(dumps: Dumps) -> None:
    """The SMT state is the kernel's word, and unknown where old kernels have none."""
    names = ("lscpu-vmware_fpe", "hwloc-offline-cpu0-node0", "hwloc-8em64t-2s2ca2c-buggynuma")
    assert [machine_of(dumps, name).smt for name in names] == ["on", "notsupported", None]
