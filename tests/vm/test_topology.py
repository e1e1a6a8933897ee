"""A machine is read as QEMU was told to make it."""

from typing import Any

import pytest

from .told import MACHINES, Told

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def read(machine: dict[str, Any]) -> Told:
    """Return what the guest has read, in the form of what QEMU was told."""
    return Told(
        cores=[core["cpus"] for core in machine["cores"]],
        packages=machine["packages"],
        l3=machine["l3"],
        nodes=[node["cpus"] for node in machine["nodes"]],
    )


@pytest.mark.parametrize("name", MACHINES)
def test_topology(request: pytest.FixtureRequest, name: str) -> None:
    """Siblings, packages, level-3 groups and nodes are those of the machine, whatever the order of its CPUs."""
    machine, told = request.getfixturevalue(name)["machine"], MACHINES[name]
    assert read(machine) == told
    assert machine["online"] == sorted(cpu for core in told.cores for cpu in core)
    for core in machine["cores"]:
        first = core["cpus"][0]
        for kind, groups in (("package", told.packages), ("l3", told.l3), ("node", told.nodes)):
            assert first in groups[core[kind]]


@pytest.mark.parametrize(("name", "mib"), [("two_nodes", 512), ("adjacent", 512), ("four_nodes", 400), ("metal", 600)])
def test_memory_of_nodes(request: pytest.FixtureRequest, name: str, mib: int) -> None:
    """Each node has the memory it was given, but for what the kernel keeps to itself."""
    machine = request.getfixturevalue(name)["machine"]
    assert all(0.85 * mib <= node["memory_bytes"] / 2**20 <= mib for node in machine["nodes"])
    assert machine["allowed_nodes"] == [node["id"] for node in machine["nodes"]]
    assert machine["cpu_quota"] is None


def test_neighbours(four_nodes: Any, two_nodes: Any) -> None:
    """The other node of the socket is nearer than those of the other socket."""
    assert [node["neighbours"] for node in two_nodes["machine"]["nodes"]] == [[1], [0]]
    assert [node["neighbours"][0] for node in four_nodes["machine"]["nodes"]] == [1, 0, 3, 2]


def test_offline_cpus(adjacent: Any) -> None:
    """CPUs that are switched off belong to nothing: 3 leaves its sibling alone, 4 and 5 their core empty."""
    offline = adjacent["offline"]
    assert offline["cpus"] == [3, 4, 5]
    left = set(range(16)) - {3, 4, 5}
    assert read(offline["machine"]) == MACHINES["adjacent"].cut_to(left)
    assert offline["machine"]["allowed"] == sorted(left)


def test_offline_cpus_are_refused(adjacent: Any) -> None:
    """Neither can instances be bound to them, nor processes started there, not even with others beside."""
    offline = adjacent["offline"]
    assert "CPU 3 for instance 1, but not online; allowed are 0-2,6-15" in offline["bound"]
    assert "on CPUs 3 (Invalid argument)" in offline["process"]["message"]
    assert "on CPUs 2-3 (the kernel grants only 2)" in offline["process_partly"]["message"]


def test_odd_nodes(odd_nodes: Any) -> None:
    """A node without memory has 0 bytes and cannot give any; one without CPUs has those that are nearest to it."""
    machine = odd_nodes["machine"]
    assert [(node["cpus"], node["memory_bytes"] > 0) for node in machine["nodes"]] == [
        ([0, 1], True),
        ([2, 3], True),
        ([4, 5], False),
        ([2, 3], True),
    ]
    assert [core["node"] for core in machine["cores"]] == [0, 0, 1, 1, 2, 2]
    assert machine["allowed_nodes"] == [0, 1, 3]
    assert machine["nodes"][2]["neighbours"] == [1, 3, 0]


def test_isolated_cpus(isolated: Any) -> None:
    """`isolcpus=3,7` is read, and keeps these out of the affinity mask that processes begin with."""
    machine = isolated["machine"]
    assert read(machine) == MACHINES["two_nodes"]
    assert (machine["isolated"], machine["allowed"]) == ([3, 7], [0, 1, 2, 4, 5, 6])


def test_nested_groups(two_nodes: Any) -> None:
    """CPUs 1-6 outside and 0-3 inside leave 1-3; of quotas 3.5 outside and 1.5 inside the tighter one counts."""
    machine = two_nodes["confined_machine"]
    assert (machine["online"], machine["allowed"]) == (list(range(8)), [1, 2, 3])
    assert (machine["allowed_nodes"], machine["cpu_quota"]) == ([0], 1.5)


def test_groups_of_version_1(isolated: Any) -> None:
    """CPUs 0-2 and 5 and the memory of node 1 are what is allowed; a quota outside of the own group counts."""
    machine = isolated["confined"]["machine"]
    assert (machine["allowed"], machine["allowed_nodes"], machine["cpu_quota"]) == ([0, 1, 2, 5], [1], None)
    assert isolated["nested_quota"] == 2.5
