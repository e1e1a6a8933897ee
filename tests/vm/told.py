"""What QEMU was told, in Linux' numbers and worked out by hand: what the project has to read and to keep to."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["MACHINES", "Told", "check_placements", "pages", "policy"]

Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Told:
    """The CPUs of each core, package, level-3 cache and node, each by first CPU."""

    cores: Groups
    packages: Groups
    l3: Groups
    nodes: Groups

    def cut_to(self, cpus: Iterable[int]) -> "Told":
        """Leave out all other CPUs, and what then is empty."""
        kept = set(cpus)

        def cut(groups: Groups) -> Groups:
            return [part for group in groups if (part := [cpu for cpu in group if cpu in kept])]

        return Told(cut(self.cores), cut(self.packages), cut(self.l3), cut(self.nodes))


def _ranges(*bounds: tuple[int, int]) -> list[int]:
    return [cpu for first, last in bounds for cpu in range(first, last + 1)]


_SPLIT = [_ranges((0, 1), (4, 5)), _ranges((2, 3), (6, 7))]
_ROBIN = [[0, 2, 4, 6], [1, 3, 5, 7]]
_PAIRS = [_ranges((n, n + 1)) for n in range(0, 8, 2)]
_METAL = [_ranges((0, 23), (48, 71)), _ranges((24, 47), (72, 95))]
MACHINES = {
    "two_nodes": Told([[n, n + 4] for n in range(4)], _SPLIT, _SPLIT, _SPLIT),
    "adjacent": Told(
        cores=[[n, n + 1] for n in range(0, 16, 2)],
        packages=[_ranges((0, 7)), _ranges((8, 15))],
        l3=[_ranges((n, n + 3)) for n in range(0, 16, 4)],
        nodes=[_ranges((0, 7)), _ranges((8, 15))],
    ),
    "robin": Told([[n, n + 4] for n in range(4)], _ROBIN, _ROBIN, _ROBIN),
    "four_nodes": Told([[n] for n in range(8)], [_ranges((0, 3)), _ranges((4, 7))], _PAIRS, _PAIRS),
    "metal": Told([[n, n + 48] for n in range(48)], _METAL, _METAL, _METAL),
}
"""By the names of the fixtures that boot them."""


def check_placements(answers: Sequence[dict[str, Any]], told: Told) -> int:
    """See that instances never share a core, and leave a node or a level-3 cache only where they must.

    Args:
        answers: Wishes with their placements or refusals, as the guest printed them.
        told: The machine, cut down to the CPUs that may be used.

    Returns:
        Number of wishes that were placed.
    """
    placed = [answer for answer in answers if "refusal" not in answer]
    for answer in answers:
        wish = answer["wish"]
        if wish["strategy"] in {"close", "scatter"}:
            needed = (wish["instances"] or 1) * (wish["cores"] or 1) + wish["reserve"]
            assert ("refusal" in answer) == (needed > len(told.cores)), answer
    for answer in placed:
        instances = [instance["cpus"] for instance in answer["instances"]]
        _check_cores(answer["wish"], instances, told)
        _check_reach(answer["wish"], instances, told)
    return len(placed)


def pages(area: str) -> dict[int, int]:
    """Return the pages by node of an area of memory, as the kernel lists it."""
    return {int(node): int(count) for node, count in re.findall(r" N(\d+)=(\d+)", area)}


def policy(area: str) -> str:
    """Return the policy of an area of memory, as the kernel lists it."""
    found = re.match(r"\w+ (\S+(?: \(many\):\S+)?)", area)
    assert found is not None, area
    return found[1]


def _check_cores(wish: dict[str, Any], instances: Groups, told: Told) -> None:
    """No core has two owners; each is used by one thread, or by all of them."""
    owned = [_touched(cpus, told.cores) for cpus in instances]
    assert sum(map(len, owned)) == len(set().union(*owned)), (wish, instances)
    assert len(instances) == (wish["instances"] or len(instances)), (wish, instances)
    for cpus, cores in zip(instances, owned, strict=True):
        assert len(cores) == (wish["cores"] or len(cores)), (wish, instances)
        threads = sum(len(told.cores[core]) for core in cores) if wish["smt"] == "all" else len(cores)
        assert len(cpus) == threads, (wish, instances)


def _check_reach(wish: dict[str, Any], instances: Groups, told: Told) -> None:
    nodes = [_touched(cpus, told.nodes) for cpus in instances]
    if wish["strategy"] == "l3":
        assert all(len(_touched(cpus, told.l3)) == 1 for cpus in instances), (wish, instances)
    if wish["strategy"] == "node":
        assert len(set().union(*nodes)) == len(instances), (wish, instances)
    if not _must_cross(wish, told):
        assert all(len(own) == 1 for own in nodes), (wish, instances)


def _must_cross(wish: dict[str, Any], told: Told) -> bool:
    """Tell by arithmetic whether the nodes cannot hold such instances one by one."""
    if wish["strategy"] in {"l3", "node"}:
        return False
    if wish["cores"] is None:
        return wish["instances"] in {None, 1}  # one that is to have all cores
    sizes = [len(_touched(node, told.cores)) for node in told.nodes]
    if wish["reserve"]:
        sizes[sizes.index(max(sizes))] -= 1
    fitting = sum(size // int(wish["cores"]) for size in sizes)
    return int(wish["instances"] or 1) > fitting


def _touched(cpus: Iterable[int], groups: Groups) -> set[int]:
    """Return the indices of the groups that these CPUs are in."""
    return {index for index, group in enumerate(groups) if not set(group).isdisjoint(cpus)}
