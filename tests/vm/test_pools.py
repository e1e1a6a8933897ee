"""The pool with the fake engine on a machine with several nodes: threads, pages and knobs of its workers."""

from typing import Any

import pytest

from .told import pages, policy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PAGES = 4096  # of 4 KiB in the 16 MiB that each forward pass fills


def knob(instance: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what was asked for of a knob, and what is in effect."""
    return next(one for one in instance["knobs"] if one["knob"] == name)


def check_place(instance: dict[str, Any], cpus: list[int], node: int) -> None:
    """See that all threads are on these CPUs, and all that the process has filled on this node."""
    assert instance["cpus"] == cpus
    assert all(thread == cpus for thread in instance["affinity"])
    assert instance["threads"] == len(cpus)
    assert set(pages(instance["area"])) == {node}
    assert pages(instance["area"])[node] >= PAGES
    anonymous = {one["node"]: one["anonymous_bytes"] for one in instance["node_memory"]}
    assert anonymous[node] >= 2 * PAGES * 4096  # it has run twice
    assert not any(size for other, size in anonymous.items() if other != node)


@pytest.mark.parametrize(
    ("name", "shown", "effective"),
    [
        ("auto", "prefer:{}", "preferred"),
        ("preferred", "prefer:{}", "preferred"),
        ("bind", "bind:{}", "bind"),
        ("interleave", "interleave:{}", "interleave"),
        ("local", "local", "local"),
        ("none", "default", "none"),
    ],
)
def test_two_instances(pools: Any, name: str, shown: str, effective: str) -> None:
    """Each has the two cores of a node, and its memory there, by the policy that was asked for."""
    instances = pools["two"][name]
    assert [instance["ran"] for instance in instances] == [0, 1]
    for node, (instance, cpus) in enumerate(zip(instances, ([0, 1], [2, 3]), strict=True)):
        check_place(instance, cpus, node)
        assert policy(instance["area"]) == shown.format(node)
        asked = knob(instance, "memory_policy")
        assert (asked["requested"], asked["effective"]) == (name, effective)
        assert instance["problems"] == []


def test_four_instances(pools: Any) -> None:
    """Each has a core, and its memory on the node of that core."""
    for number, (instance, node) in enumerate(zip(pools["four"], (0, 0, 1, 1), strict=True)):
        check_place(instance, [number], node)
        assert instance["problems"] == []


def test_memory_away_from_the_cores(pools: Any) -> None:
    """Bound to, and preferring, the far node all pages are there; interleaved half; of both nodes the near one."""
    bound, preferred, interleaved, both = (instance["area"] for instance in pools["far"])
    assert [policy(area) for area in (bound, preferred)] == ["bind:1", "prefer:1"]
    assert set(pages(bound)) == set(pages(preferred)) == {1}
    assert policy(interleaved) == "interleave:0-1"
    assert min(pages(interleaved).values()) >= PAGES * 3 // 8
    assert policy(both) == "prefer (many):0-1"
    assert set(pages(both)) == {1}
    assert [instance["cpus"] for instance in pools["far"]] == [[0], [1], [2], [3]]
    assert [instance["problems"] for instance in pools["far"]] == [[]] * 4


def test_instance_over_two_nodes(pools: Any) -> None:
    """One instance has all cores; its memory is interleaved over the nodes."""
    (instance,) = pools["spanning"]
    assert instance["cpus"] == [0, 1, 2, 3]
    assert policy(instance["area"]) == "interleave:0-1"
    assert min(pages(instance["area"]).values()) >= PAGES * 3 // 8
    memory = knob(instance, "memory_policy")
    assert (memory["requested"], memory["effective"]) == ("auto", "interleave")


def test_all_hardware_threads(pools: Any) -> None:
    """`smt=all` gives an instance of two cores their four CPUs, and is found in effect."""
    check_place(pools["knobs"][0], [0, 1, 4, 5], 0)
    assert (knob(pools["knobs"][0], "smt")["requested"], knob(pools["knobs"][0], "smt")["effective"]) == ("all", "all")
    assert pools["knobs"][0]["problems"] == []


def test_knobs_that_did_not_take_effect(pools: Any) -> None:
    """An instance that is started otherwise than its knobs say has that as its problem."""
    without_policy, on_siblings = pools["knobs"][1:]
    said = "memory_policy: asked bind, get_mempolicy says none: no policy was asked for: first touch"
    assert without_policy["problems"] == [said]
    assert knob(without_policy, "memory_policy")["effective"] == "none"
    assert "smt: asked one, two of its CPUs share a core" in on_siblings["problems"]
    assert knob(on_siblings, "smt")["effective"] == "all"


def test_alternating_cpu_numbers(robin: Any) -> None:
    """Where even CPUs are node 0 and odd ones node 1, instances have CPUs 0 and 2, and 1 and 3."""
    for node, instance in enumerate(robin["pool"]):
        check_place(instance, [node, node + 2], node)
        assert policy(instance["area"]) == f"bind:{node}"
        assert instance["problems"] == []


def test_four_nodes(four_nodes: Any) -> None:
    """Each of four instances has a node of its own."""
    for node, instance in enumerate(four_nodes["four"]):
        check_place(instance, [2 * node, 2 * node + 1], node)
        assert instance["problems"] == []


def test_instances_over_near_nodes(four_nodes: Any) -> None:
    """Each of two large instances is interleaved over the two nodes of a socket."""
    for instance, nodes in zip(four_nodes["spanning"], ("0-1", "2-3"), strict=True):
        assert policy(instance["area"]) == f"interleave:{nodes}"
        assert min(pages(instance["area"]).values()) >= PAGES * 3 // 8


def test_system_call_filter(two_nodes: Any) -> None:
    """Where set_mempolicy is forbidden, a pool runs by first touch and says so; with a named policy it fails."""
    (instance,) = two_nodes["filtered"]["pool_auto"]
    assert set(pages(instance["area"])) == {0}
    asked = knob(instance, "memory_policy")
    assert (asked["requested"], asked["effective"]) == ("auto", "none")
    assert "Operation not permitted" in asked["why"]
    assert instance["problems"] == []
    refused = two_nodes["filtered"]["pool_bind"]
    assert refused["error"] == "KnobError"
    assert "memory_policy=bind cannot be had here: set_mempolicy says Operation not permitted" in refused["message"]


def test_within_a_cpuset(two_nodes: Any) -> None:
    """With CPUs 2-3,6 and the memory of node 1, two instances have CPUs 2 and 3, and their memory on node 1."""
    for instance, cpus in zip(two_nodes["confined_memory"]["pool"], ([2], [3]), strict=True):
        check_place(instance, cpus, 1)
        assert instance["problems"] == []


def test_within_a_quota(two_nodes: Any) -> None:
    """With 1.5 CPUs' worth of time, an instance that could have four cores computes with one thread on one."""
    (instance,) = two_nodes["pool_within_quota"]
    check_place(instance, [0], 0)
    assert instance["problems"] == []
