"""Processes on cores and memory nodes of a real kernel with 2 sockets, 2 nodes and SMT."""

import re
from collections.abc import Callable
from typing import Any

import pytest

Boot = Callable[..., Any]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PAGES = 4096  # of 4 KiB in the 16 MiB that each process touches


@pytest.fixture(scope="module")
def two_nodes(boot: Boot) -> Any:
    """Results of a guest with CPUs 0-1,4-5 on node 0 and 2-3,6-7 on node 1; CPU n and n+4 share a core."""
    options = ("--sockets", "2", "--cores", "2", "--threads", "2", "--nodes", "2", "--numbering", "split")
    return boot("placements.py", "two-nodes", *options)


@pytest.fixture(scope="module")
def memoryless_node(boot: Boot) -> Any:
    """Results of a guest whose node 2 has two CPUs and no memory."""
    options = ("--sockets", "1", "--cores", "6", "--threads", "1", "--numbering", "adjacent")
    return boot("placements.py", "memoryless-node", *options, "--node-cpus", "0-1;2-3;4-5", "--node-mem", "400,400,0")


def pages(case: dict[str, Any]) -> dict[int, int]:
    """Pages by node of the area that the process touched, as the kernel lists it."""
    return {int(node): int(count) for node, count in re.findall(r" N(\d+)=(\d+)", case["area"])}


def policy(case: dict[str, Any]) -> str:
    """Policy of the area that the process touched, as the kernel lists it."""
    return str(re.match(r"\w+ (\S+(?: \(many\):\S+)?)", case["area"])[1])  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "cpus", "shown", "node"),
    [
        ("bind", [2, 6], "bind:1", 1),
        ("bind_far", [0], "bind:1", 1),
        ("preferred_far", [0, 4], "prefer:1", 1),
        ("local", [3], "local", 1),
        ("none", [7], "default", 1),
        ("auto_one", [1, 5], "prefer:0", 0),
    ],
)
def test_all_pages_lie_on_the_one_node(two_nodes: Any, name: str, cpus: list[int], shown: str, node: int) -> None:
    """All threads are on their CPUs, and every page is where the policy says, far from the CPUs where it says so."""
    case = two_nodes[name]
    assert case["affinity"] == [cpus, cpus]
    assert policy(case) == shown
    assert set(pages(case)) == {node}
    assert pages(case)[node] >= PAGES


@pytest.mark.parametrize("name", ["interleave", "auto_both"])
def test_pages_are_interleaved(two_nodes: Any, name: str) -> None:
    """Over two nodes the pages go half and half, as nearly as huge pages (2 MiB of the 16) allow."""
    case = two_nodes[name]
    assert policy(case) == "interleave:0-1"
    assert sum(pages(case).values()) >= PAGES
    assert min(pages(case).values()) >= PAGES * 3 // 8
    assert (case["memory"]["effective"], case["memory"]["nodes"]) == ("interleave", [0, 1])


def test_several_nodes_can_be_preferred(two_nodes: Any) -> None:
    """`preferred` with two nodes means both of them (MPOL_PREFERRED_MANY), not the first."""
    assert policy(two_nodes["preferred_both"]) == "prefer (many):0-1"


def test_evidence_finds_the_pages(two_nodes: Any) -> None:
    """The evidence has all anonymous memory on the node it was bound to; files lie where they were read first."""
    anonymous = {node["node"]: node["anonymous_bytes"] for node in two_nodes["bind"]["node_memory"]}
    assert anonymous[1] >= PAGES * 4096
    assert anonymous.get(0, 0) == 0


def test_absent_node(two_nodes: Any) -> None:
    """A node the machine does not have is refused, and the nodes it has are named."""
    assert two_nodes["absent"]["error"] == "StartError"
    assert "bind on nodes 5" in two_nodes["absent"]["message"]
    assert "may use: 0-1" in two_nodes["absent"]["message"]


def test_system_call_filter(two_nodes: Any) -> None:
    """Where set_mempolicy is forbidden, auto starts with first touch and the reason; a named policy fails."""
    filtered = two_nodes["filtered"]
    assert filtered["auto"]["memory"]["effective"] == "none"
    assert "Operation not permitted" in filtered["auto"]["memory"]["why"]
    assert policy(filtered["auto"]) == "default"
    assert filtered["bind"]["error"] == "StartError"


def test_cpuset_denies_memory(two_nodes: Any) -> None:
    """In a cpuset with the memory of node 1 only, node 0 is refused, and a part of what was asked for is not enough."""
    confined = two_nodes["confined_memory"]
    assert "may use: 1;" in confined["bind_0"]["message"]
    assert "the kernel made it interleave 1" in confined["interleave_both"]["message"]
    assert (confined["auto_both"]["memory"]["effective"], confined["auto_both"]["memory"]["nodes"]) == (
        "interleave",
        [1],
    )
    assert set(pages(confined["bind_1"])) == {1}
    assert confined["bind_1"]["affinity"] == [[2, 6], [2, 6]]


def test_cpuset_denies_cpus(two_nodes: Any) -> None:
    """CPUs outside the cpuset are refused, also when the kernel would silently grant the rest."""
    confined = two_nodes["confined_memory"]
    assert "on CPUs 1-2 (the kernel grants only 2); this process may use 2-3,6" in confined["partly_outside"]["message"]
    assert "on CPUs 0-1 (Invalid argument)" in confined["outside"]["message"]


def test_machine_is_read_as_built(two_nodes: Any) -> None:
    """Cores, packages and nodes are those that the virtual machine was given."""
    machine = two_nodes["machine"]
    assert [core["cpus"] for core in machine["cores"]] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert machine["packages"] == machine["l3"] == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert [(node["id"], node["cpus"], node["neighbours"]) for node in machine["nodes"]] == [
        (0, [0, 1, 4, 5], [1]),
        (1, [2, 3, 6, 7], [0]),
    ]
    assert all(460 << 20 <= node["memory_bytes"] <= 512 << 20 for node in machine["nodes"])
    assert (machine["allowed"], machine["allowed_nodes"]) == (list(range(8)), [0, 1])
    assert machine["cpu_quota"] is None


def test_machine_is_read_within_its_control_groups(two_nodes: Any) -> None:
    """CPUs 1-6 outside and 0-3 inside leave 1-3; of quotas 3.5 outside and 1.5 inside the tighter one counts."""
    machine = two_nodes["confined_machine"]
    assert (machine["online"], machine["allowed"]) == (list(range(8)), [1, 2, 3])
    assert (machine["allowed_nodes"], machine["cpu_quota"]) == ([0], 1.5)


def test_node_without_memory(memoryless_node: Any) -> None:
    """It is read as such; binding to it fails and names the nodes that have memory; its neighbour's can be used."""
    machine = memoryless_node["machine"]
    assert [(node["cpus"], node["memory_bytes"] > 0) for node in machine["nodes"]] == [
        ([0, 1], True),
        ([2, 3], True),
        ([4, 5], False),
    ]
    for name in ("bind", "auto"):
        assert f"memory policy {name} on nodes 2" in memoryless_node[name]["message"]
        assert "may use: 0-1;" in memoryless_node[name]["message"]
    assert set(pages(memoryless_node["near"])) == {1}
    assert memoryless_node["near"]["affinity"] == [[4, 5], [4, 5]]
