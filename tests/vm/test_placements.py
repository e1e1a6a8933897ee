"""Placements of many wishes keep to the cores and nodes of the machine, and to the limits on it."""

from typing import Any

import pytest

from .told import MACHINES, Told, check_placements

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def node_of(instance: dict[str, Any], told: Told) -> list[int]:
    """Return the nodes that an instance's CPUs are on."""
    return [node for node, cpus in enumerate(told.nodes) if not set(cpus).isdisjoint(instance["cpus"])]


@pytest.mark.parametrize("name", MACHINES)
def test_cores_and_nodes(request: pytest.FixtureRequest, name: str) -> None:
    """Instances share no core, cross nodes only if they must, and have their memory where their cores are."""
    answers, told = request.getfixturevalue(name)["placements"], MACHINES[name]
    assert check_placements(answers, told) >= len(answers) / 2
    for answer in answers:
        for instance in answer.get("instances", ()):
            assert instance["nodes"] == node_of(instance, told)


def test_without_offline_cpus(adjacent: Any) -> None:
    """The same holds for what is left when CPUs are switched off, on nodes of 3 and of 4 cores."""
    left = MACHINES["adjacent"].cut_to(set(range(16)) - {3, 4, 5})
    assert check_placements(adjacent["offline"]["placements"], left) > 100


def test_without_memory(odd_nodes: Any) -> None:
    """The cores of a node without memory are used, with the memory of the node that is nearest to them."""
    assert [(one["cpus"], one["nodes"]) for one in odd_nodes["three"]["instances"]] == [
        ([0, 1], [0]),
        ([2, 3], [1]),
        ([4, 5], [1]),
    ]
    assert odd_nodes["three"]["warnings"] == ["Node 2 has no memory: its cores use that of node 1, the nearest."]
    for answer in odd_nodes["placements"]:
        assert all(2 not in one["nodes"] for one in answer.get("instances", ()))


def test_without_isolated_cpus(isolated: Any) -> None:
    """Isolated CPUs are left out, and it is said; they can be named."""
    left = MACHINES["two_nodes"].cut_to({0, 1, 2, 4, 5, 6})
    assert check_placements(isolated["placements"], left) > 100
    assert "forbidden by affinity mask or cpuset; allowed are 0-2,4-6" in isolated["bound_outside"]
    widened = isolated["widened"]
    assert check_placements(widened["placements"], left) > 100
    placed = [answer for answer in widened["placements"] if "refusal" not in answer]
    assert all(any("Left out CPUs 3,7, isolated" in text for text in answer["warnings"]) for answer in placed)
    assert [one["cpus"] for one in widened["bound"]["instances"]] == [[3, 7]]
    assert widened["process"]["affinity"] == [[3, 7], [3, 7]]


def test_only_isolated_cpus(isolated: Any) -> None:
    """Where all allowed CPUs are isolated, none is used unless it is named."""
    refusal = "all allowed CPUs (3,7) are isolated from the scheduler; name them to use them: --bind 3,7"
    assert {answer["refusal"] for answer in isolated["only_isolated"]["placements"]} == {refusal}


def test_within_a_cpuset_of_version_1(isolated: Any) -> None:
    """Cores are cut down to the cpuset, memory comes from the node that is allowed, and others are refused."""
    confined = isolated["confined"]
    assert check_placements(confined["placements"], MACHINES["two_nodes"].cut_to({0, 1, 2, 5})) > 100
    for answer in confined["placements"]:
        assert all(one["nodes"] == [1] for one in answer.get("instances", ()))
    assert "may use: 1;" in confined["bind_0"]["message"]
    assert "on CPUs 4 (Invalid argument); this process may use 0-2,5" in confined["outside"]["message"]
    assert confined["bind_1"]["affinity"] == [[2], [2]]


@pytest.mark.parametrize(("quota", "cpus", "threads"), [("50000", 0.5, 1), ("150000", 1.5, 1), ("350000", 3.5, 3)])
@pytest.mark.parametrize("name", ["two_nodes", "isolated"])
def test_quota(request: pytest.FixtureRequest, name: str, quota: str, cpus: float, threads: int) -> None:
    """By control groups of version 2 and 1: never more threads than the quota of CPUs rounded down, or one."""
    within = request.getfixturevalue(name)["quotas"][quota]
    assert within["cpu_quota"] == cpus
    counts = [
        sum(len(instance["cpus"]) for instance in answer["instances"])
        for answer in within["placements"]
        if "refusal" not in answer
    ]
    assert max(counts) == threads
    refused = [answer for answer in within["placements"] if "refusal" in answer]
    assert all(f"lets {threads} thread" in answer["refusal"] for answer in refused if _fits(answer["wish"]))


def _fits(wish: dict[str, Any]) -> bool:
    """Tell whether three cores without a quota could hold the wish, so that it is the quota that forbids it."""
    needed = (wish["instances"] or 1) * (wish["cores"] or 1) + wish["reserve"]
    return wish["strategy"] in {"close", "scatter"} and needed <= 3


def test_instances_on_96_cpus(metal: Any) -> None:
    """Two instances have a socket each, eight of them six cores each, four in either socket."""
    assert [(one["cpus"], one["nodes"]) for one in metal["two"]["instances"]] == [
        (list(range(24)), [0]),
        (list(range(24, 48)), [1]),
    ]
    eight = [(one["cpus"], one["nodes"]) for one in metal["eight"]["instances"]]
    assert eight == [(list(range(first, first + 6)), [int(first >= 24)]) for first in range(0, 48, 6)]


def test_instances_over_near_nodes(four_nodes: Any) -> None:
    """Instances that are larger than a node cover two of one socket, not two that are far from each other."""
    for answer in four_nodes["placements"]:
        if answer["wish"]["cores"] in {3, 4} and answer["wish"]["instances"] == 2 and "refusal" not in answer:
            assert sorted(one["nodes"] for one in answer["instances"]) == [[0, 1], [2, 3]]
