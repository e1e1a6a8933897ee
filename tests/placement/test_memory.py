"""Where memory comes from on machines without a distance table."""

import msgspec
import pytest

from pinstripe.machine import Machine
from pinstripe.placement import Placement, Strategy, Wish, place
from pinstripe.testing.machines import uniform

VMWARE = uniform(packages=2, nodes_per_package=2, cores_per_node=2, smt=2, numbering="adjacent")


def cpus(placement: Placement) -> list[tuple[int, ...]]:
    """Return the CPUs of each instance."""
    return [instance.cpus for instance in placement.instances]


def nodes(placement: Placement) -> list[tuple[int, ...]]:
    """Return the memory nodes of each instance."""
    return [instance.nodes for instance in placement.instances]


def without_distances(machine: Machine, empty: tuple[int, ...] = (), forbidden: tuple[int, ...] = ()) -> Machine:
    """Return the machine without a distance table, some of its nodes without memory or with memory not allowed."""
    return msgspec.structs.replace(
        machine,
        nodes=tuple(
            msgspec.structs.replace(node, neighbours=(), memory_bytes=0 if node.id in empty else node.memory_bytes)
            for node in machine.nodes
        ),
        allowed_nodes=tuple(node for node in machine.allowed_nodes if node not in forbidden),
    )


def test_memory_comes_from_the_same_package_where_no_distance_is_known() -> None:
    """Node 1 (empty) takes node 0's, beside it in the package, and node 2 (forbidden) takes node 3's."""
    placement = place(without_distances(VMWARE, empty=(1,), forbidden=(2,)), Wish(instances=4))
    assert nodes(placement) == [(0,), (0,), (3,), (3,)]
    chosen = "of the same package (which is nearest is not known)."
    assert placement.warnings == (
        f"Node 1 has no memory: its cores use that of node 0, {chosen}",
        f"Node 2 has no memory that this process may use: its cores use that of node 3, {chosen}",
    )


def test_memory_comes_from_every_node_that_has_some_where_nothing_is_near() -> None:
    """Both nodes of package 0 are empty, so their cores use both of package 1; with nothing anywhere, none is named."""
    placement = place(without_distances(VMWARE, empty=(0, 1)), Wish(instances=4))
    assert nodes(placement) == [(2, 3), (2, 3), (2,), (3,)]
    assert placement.warnings[0] == (
        "Node 0 has no memory: its cores use that of nodes 2-3, all that have some (which is nearest is not known)."
    )
    nothing = place(without_distances(VMWARE, forbidden=(0, 1, 2, 3)), Wish(instances=4))
    assert nodes(nothing) == [(), (), (), ()]
    assert all("no other is known" in warning for warning in nothing.warnings)


@pytest.mark.parametrize("strategy", ["close", "scatter", "l3", "node"])
def test_nodes_that_give_memory_are_preferred(strategy: Strategy) -> None:
    """Two instances of a node's size go where memory is; where all nodes are needed, their order is the usual one."""
    machine = without_distances(VMWARE, empty=(0,), forbidden=(2,))
    caches = msgspec.structs.replace(
        machine, cores=tuple(msgspec.structs.replace(core, l3=core.node) for core in machine.cores)
    )
    placement = place(caches, Wish(instances=2, cores=2, strategy=strategy))
    assert cpus(placement) == [(4, 6), (12, 14)]
    assert placement.warnings == ()
    assert cpus(place(caches, Wish(instances=4, strategy=strategy))) == [(0, 2), (4, 6), (8, 10), (12, 14)]


def test_crossing_stays_within_a_package_where_no_distance_is_known() -> None:
    """Two instances of 3 cores on nodes of 2: one over each package's nodes, and none over both packages."""
    placement = place(without_distances(VMWARE), Wish(instances=2, cores=3))
    assert cpus(placement) == [(0, 2, 4), (8, 10, 12)]
    assert nodes(placement) == [(0, 1), (2, 3)]
