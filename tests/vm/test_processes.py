"""Processes on cores and memory nodes of a real kernel: where the kernel says that their threads and pages are."""

from typing import Any

import pytest

from .told import pages, policy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PAGES = 4096  # of 4 KiB in the 16 MiB that each process touches


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
    case = two_nodes["processes"][name]
    assert case["affinity"] == [cpus, cpus]
    assert policy(case["area"]) == shown
    assert set(pages(case["area"])) == {node}
    assert pages(case["area"])[node] >= PAGES


@pytest.mark.parametrize("name", ["interleave", "auto_both"])
def test_pages_are_interleaved(two_nodes: Any, name: str) -> None:
    """Over two nodes the pages go half and half, as nearly as huge pages (2 MiB of the 16) allow."""
    case = two_nodes["processes"][name]
    assert policy(case["area"]) == "interleave:0-1"
    assert sum(pages(case["area"]).values()) >= PAGES
    assert min(pages(case["area"]).values()) >= PAGES * 3 // 8
    assert (case["memory"]["effective"], case["memory"]["nodes"]) == ("interleave", [0, 1])


def test_several_nodes_can_be_preferred(two_nodes: Any) -> None:
    """`preferred` with two nodes means both of them (MPOL_PREFERRED_MANY), not the first."""
    assert policy(two_nodes["processes"]["preferred_both"]["area"]) == "prefer (many):0-1"


def test_evidence_finds_the_pages(two_nodes: Any) -> None:
    """The evidence has all anonymous memory on the node it was bound to; files lie where they were read first."""
    anonymous = {node["node"]: node["anonymous_bytes"] for node in two_nodes["processes"]["bind"]["node_memory"]}
    assert anonymous[1] >= PAGES * 4096
    assert anonymous.get(0, 0) == 0


def test_absent_node(two_nodes: Any) -> None:
    """A node the machine does not have is refused, and the nodes it has are named."""
    absent = two_nodes["processes"]["absent"]
    assert absent["error"] == "StartError"
    assert "bind on nodes 5" in absent["message"]
    assert "may use: 0-1" in absent["message"]


def test_system_call_filter(two_nodes: Any) -> None:
    """Where set_mempolicy is forbidden, auto starts with first touch and the reason; a named policy fails."""
    filtered = two_nodes["filtered"]
    assert filtered["auto"]["memory"]["effective"] == "none"
    assert "Operation not permitted" in filtered["auto"]["memory"]["why"]
    assert policy(filtered["auto"]["area"]) == "default"
    assert filtered["bind"]["error"] == "StartError"


def test_cpuset_denies_memory(two_nodes: Any) -> None:
    """In a cpuset with the memory of node 1 only, node 0 is refused, and a part of what was asked for is not enough."""
    confined = two_nodes["confined_memory"]
    assert "may use: 1;" in confined["bind_0"]["message"]
    assert "the kernel made it interleave 1" in confined["interleave_both"]["message"]
    memory = confined["auto_both"]["memory"]
    assert (memory["effective"], memory["nodes"]) == ("interleave", [1])
    assert set(pages(confined["bind_1"]["area"])) == {1}
    assert confined["bind_1"]["affinity"] == [[2, 6], [2, 6]]


def test_cpuset_denies_cpus(two_nodes: Any) -> None:
    """CPUs outside the cpuset are refused, also when the kernel would silently grant the rest."""
    confined = two_nodes["confined_memory"]
    assert "on CPUs 1-2 (the kernel grants only 2); this process may use 2-3,6" in confined["partly_outside"]["message"]
    assert "on CPUs 0-1 (Invalid argument)" in confined["outside"]["message"]


@pytest.mark.parametrize("name", ["processes", "bound"])
def test_beside_a_node_without_memory(odd_nodes: Any, name: str) -> None:
    """Where placement put them, all start; the pages of those on node 2 are on node 1."""
    assert [set(pages(case["area"])) for case in odd_nodes[name]] == [{0}, {1}, {1}]
    assert [case["affinity"][0] for case in odd_nodes[name]] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("name", ["auto", "preferred", "bind", "interleave"])
def test_node_without_memory(odd_nodes: Any, name: str) -> None:
    """It cannot be asked for by any policy, and those that can are named; first touch goes to the nearest."""
    refused = odd_nodes["without_memory"][name]["message"]
    assert f"memory policy {name} on nodes 2 could not take effect (Invalid argument)" in refused
    assert "may use: 0-1,3; name some of those, or use none" in refused
    assert set(pages(odd_nodes["first_touch"]["area"])) == {1}


def test_node_without_cpus(odd_nodes: Any) -> None:
    """Its memory can be used from elsewhere."""
    case = odd_nodes["without_cpus"]
    assert set(pages(case["area"])) == {3}
    assert case["affinity"] == [[2, 3], [2, 3]]


def test_far_socket_of_96_cpus(metal: Any) -> None:
    """The last of eight instances has its threads and its pages in the second socket."""
    case = metal["last_of_eight"]
    assert case["affinity"] == [list(range(42, 48))] * 2
    assert set(pages(case["area"])) == {1}
