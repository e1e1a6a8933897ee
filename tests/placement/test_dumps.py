"""Wishes on real machines' dumps, against placements worked out on paper from hwloc's description of each."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from pinstripe.machine import Machine, read_machine
from pinstripe.placement import Wish, place
from pinstripe.testing.dumps import unpack_dump

SHARED = Path(__file__).parents[2] / ".." / "shared" / "topologies"
"""Dumps of real machines, kept outside of the repository."""


def numbered(first: int, count: int, step: int = 1) -> tuple[int, ...]:
    """Return `count` CPUs from `first` on."""
    return tuple(range(first, first + count * step, step))


@pytest.fixture(scope="module")
def read_dump(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Machine]:
    """Return what unpacks and reads a dump, once, or skips the test where there is none."""

    @cache
    def read(name: str) -> Machine:
        archives = list(SHARED.glob(f"{name}.tar.*"))
        if not archives:
            pytest.skip(f"no dump of {name} in {SHARED}")
        directory = tmp_path_factory.mktemp("dump")
        unpack_dump(archives[0], directory)
        description = json.loads((SHARED / f"{name}.json").read_text())
        return read_machine(directory / description["root"])

    return read


RYZEN = "ghw-ryzen1600"  # 6 cores (n, n+6); level-3 groups of cores 0-2 and 3-5; node 0
VMWARE = "lscpu-vmware_fpe"  # 8 cores of adjacent siblings; nodes 0-3 of 2 cores
X7550 = "lscpu-x86_64-64cpu"  # 32 cores (n, n+32); node 0: even ones, node 2: n % 4 == 1, node 3: n % 4 == 3
OPTERON = "hwloc-16amd64-8n2c-cpusets"  # allowed 0-3,5,6,12-15; nodes 0,1,6,7 of 2 and 2,3 of 1; memory of nodes 1-4
HYBRID = "nri-sample1-hybrid"  # P-cores (0,1) (2,3) (4,5) (6,7), E-cores 8-15
SPARSE = "hwloc-48amd64-4pa2n6c-sparse"  # 8 nodes of 6 cores; neighbours in a package: 0-1, 2-33, 34-45, 72-73
CGROUP = "hwloc-32amd64-4s2n4c-cgroup2"  # allowed 0-5: 4 cores of node 0, 2 of node 1
INTERLEAVED = "hwloc-memorysidecaches"  # 40 cores (n, n+40) of nodes 0-3 in turn
FAKE = "hwloc-4fake-4gr1nu1pu"  # 4 nodes of one core in one package, no distances; allowed CPUs 0-1, memory of 0 and 2
NO_NODE = "hwloc-offline-cpu0-node0"  # CPUs 4-20; the odd ones on node 1, the even ones without a node


@pytest.mark.parametrize(
    ("name", "wish", "cpus", "nodes"),
    [
        (RYZEN, Wish(), [(0, 1, 2, 3, 4, 5)], [(0,)]),
        (RYZEN, Wish(strategy="l3"), [(0, 1, 2), (3, 4, 5)], [(0,), (0,)]),
        (RYZEN, Wish(instances=2, smt="all"), [(0, 1, 2, 6, 7, 8), (3, 4, 5, 9, 10, 11)], [(0,), (0,)]),
        (RYZEN, Wish(reserve=1), [(0, 1, 2, 3, 4)], [(0,)]),
        (VMWARE, Wish(instances=4), [(0, 2), (4, 6), (8, 10), (12, 14)], [(0,), (1,), (2,), (3,)]),
        (VMWARE, Wish(instances=3), [(0, 2), (4, 6), (8, 10)], [(0,), (1,), (2,)]),
        (VMWARE, Wish(cores=1, instances=3, strategy="scatter"), [(0,), (4,), (8,)], [(0,), (1,), (2,)]),
        (VMWARE, Wish(instances=2, cores=3), [(0, 2, 4), (8, 10, 12)], [(0, 1), (2, 3)]),
        (
            X7550,
            Wish(instances=4),
            [numbered(0, 8, 4), numbered(2, 8, 4), numbered(1, 8, 4), numbered(3, 8, 4)],
            [(0,), (0,), (2,), (3,)],
        ),
        (
            X7550,
            Wish(strategy="node"),
            [numbered(0, 8, 4), numbered(1, 8, 4), numbered(3, 8, 4)],
            [(0,), (2,), (3,)],
        ),
        (X7550, Wish(cores=16), [numbered(0, 16, 2)], [(0,)]),
        (OPTERON, Wish(instances=4), [(0, 1), (2, 3), (12, 13), (14, 15)], [(1,), (1,), (1,), (1,)]),
        (OPTERON, Wish(instances=5), [(2,), (3,), (5,), (6,), (0,)], [(1,), (1,), (2,), (3,), (1,)]),
        (OPTERON, Wish(bind="5|6"), [(5,), (6,)], [(2,), (3,)]),
        (HYBRID, Wish(), [(0, 2, 4, 6)], [(0,)]),
        (HYBRID, Wish(core_kind="efficiency", instances=2), [(8, 9, 10, 11), (12, 13, 14, 15)], [(0,), (0,)]),
        (
            SPARSE,
            Wish(instances=8),
            [numbered(first, 6) for first in range(0, 48, 6)],
            [(0,), (1,), (2,), (33,), (34,), (45,), (72,), (73,)],
        ),
        (
            SPARSE,
            Wish(cores=12),
            [numbered(first, 12) for first in range(0, 48, 12)],
            [(0, 1), (2, 33), (34, 45), (72, 73)],
        ),
        (CGROUP, Wish(instances=2), [(0, 1), (2, 3)], [(0,), (0,)]),
        (CGROUP, Wish(instances=2, strategy="scatter"), [(0, 1), (4, 5)], [(0,), (1,)]),
        (INTERLEAVED, Wish(instances=4), [numbered(first, 10, 4) for first in range(4)], [(0,), (1,), (2,), (3,)]),
        (FAKE, Wish(instances=2), [(0,), (1,)], [(0,), (0, 2)]),
        (X7550, Wish(sizes=(1, 8, 16)), [(3,), numbered(1, 8, 4), numbered(0, 16, 2)], [(3,), (2,), (0,)]),
        (OPTERON, Wish(sizes=(1, 2)), [(5,), (2, 3)], [(2,), (1,)]),
        (CGROUP, Wish(sizes=(2, 3)), [(4, 5), (0, 1, 2)], [(1,), (0,)]),
        (HYBRID, Wish(sizes=(1, 3)), [(6,), (0, 2, 4)], [(0,), (0,)]),
        (SPARSE, Wish(sizes=(4, 12)), [numbered(12, 4), numbered(0, 12)], [(2,), (0, 1)]),
        (NO_NODE, Wish(instances=2), [numbered(5, 8, 2), numbered(4, 8, 2)], [(1,), (1,)]),
    ],
)
def test_placement_on_a_real_machine(
    read_dump: Callable[[str], Machine],
    name: str,
    wish: Wish,
    cpus: list[tuple[int, ...]],
    nodes: list[tuple[int, ...]],
) -> None:
    """The placement is the one worked out by hand."""
    placement = place(read_dump(name), wish)
    assert [instance.cpus for instance in placement.instances] == cpus
    assert [instance.nodes for instance in placement.instances] == nodes


def test_what_is_left_on_real_machines(read_dump: Callable[[str], Machine]) -> None:
    """Idle and reserved CPUs are those of whole cores, efficiency cores reserved first."""
    assert place(read_dump(VMWARE), Wish(instances=3)).idle == (12, 13, 14, 15)
    assert place(read_dump(RYZEN), Wish(reserve=1)).reserved == (5, 11)
    hybrid = place(read_dump(HYBRID), Wish(reserve=2))
    assert (hybrid.reserved, hybrid.idle) == ((14, 15), numbered(8, 6))
