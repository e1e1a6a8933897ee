"""Instances of several sizes on known machines, against placements worked out on paper."""

import msgspec
import pytest

from pinstripe.errors import PlacementError
from pinstripe.machine import Machine
from pinstripe.placement import Placement, Wish, place
from pinstripe.testing.machines import c5_metal, container_2cpu, epyc_7742_nps4, hybrid_1370p, uniform, xeon_8380


def numbered(first: int, count: int) -> tuple[int, ...]:
    """Return `count` CPUs from `first` on."""
    return tuple(range(first, first + count))


def cpus(placement: Placement) -> list[tuple[int, ...]]:
    """Return the CPUs of each instance."""
    return [instance.cpus for instance in placement.instances]


def nodes(placement: Placement) -> list[tuple[int, ...]]:
    """Return the memory nodes of each instance."""
    return [instance.nodes for instance in placement.instances]


def refusal(machine: Machine, wish: Wish) -> str:
    """Return the message that the wish is refused with."""
    with pytest.raises(PlacementError) as caught:
        place(machine, wish)
    return str(caught.value)


def test_the_larger_find_room_first() -> None:
    """Two small ones that are named first do not take from the socket that the large one fills."""
    placement = place(c5_metal(), Wish(sizes=(1, 1, 4, 24)))
    assert cpus(placement) == [(28,), (29,), numbered(24, 4), numbered(0, 24)]
    assert nodes(placement) == [(1,), (1,), (1,), (0,)]
    assert placement.idle == numbered(30, 18) + numbered(78, 18)
    assert placement.warnings == ()


def test_groups_that_fill_two_sockets() -> None:
    """On 2 sockets of 40 cores: 8 of one core, 8 of four, and 40 cores for one."""
    placement = place(xeon_8380(), Wish(sizes=(*[1] * 8, *[4] * 8, 40)))
    assert cpus(placement)[16] == numbered(0, 40)
    assert cpus(placement)[8] == numbered(40, 4)
    assert cpus(placement)[0] == (72,)
    assert placement.idle == ()
    assert placement.warnings == ()


def test_no_instance_crosses_where_the_first_fit_would() -> None:
    """4+4 on one node of 10 cores would leave 3+3+3+3 no room on the other; 4+3+3 on each does."""
    placement = place(uniform(packages=2, cores_per_node=10), Wish(sizes=(4, 4, 3, 3, 3, 3)))
    assert nodes(placement) == [(0,), (1,), (0,), (0,), (1,), (1,)]
    assert placement.idle == ()


def test_the_smallest_that_will_do_crosses() -> None:
    """3+3+2 on two nodes of 4: one has to cross, and the one of 2 cores it is."""
    placement = place(uniform(packages=2, cores_per_node=4), Wish(sizes=(2, 3, 3)))
    assert cpus(placement) == [(3, 7), (0, 1, 2), (4, 5, 6)]
    [warning] = placement.warnings
    assert "Instance 0 (2 cores) crosses nodes (node 0, node 1)" in warning


def test_only_the_one_that_no_node_holds_crosses() -> None:
    """6+2+2 on three nodes of 4: the 6 covers two nodes and part of none that another needs."""
    placement = place(uniform(packages=3, cores_per_node=4), Wish(sizes=(2, 2, 6)))
    assert cpus(placement) == [(6, 7), (8, 9), numbered(0, 6)]
    assert nodes(placement) == [(1,), (2,), (0, 1)]


def test_scatter_deals_over_nodes() -> None:
    """The second of equal ones goes to the other node."""
    placement = place(uniform(packages=2, cores_per_node=8), Wish(sizes=(1, 1, 4, 4), strategy="scatter"))
    assert cpus(placement) == [(4,), (12,), numbered(0, 4), numbered(8, 4)]


def test_l3_keeps_to_one_cache() -> None:
    """Caches of 4 cores hold 3+1 and 4; 5 cores are in none."""
    placement = place(epyc_7742_nps4(), Wish(sizes=(1, 3, 4), strategy="l3"))
    assert cpus(placement) == [(7,), (4, 5, 6), (0, 1, 2, 3)]
    assert "with --strategy l3: there are 64 usable performance cores (16 level-3 groups of 4 cores)" in refusal(
        epyc_7742_nps4(), Wish(sizes=(1, 5), strategy="l3")
    )


def test_node_gives_each_a_node_to_itself() -> None:
    """Whatever its size; more instances than nodes are refused."""
    placement = place(c5_metal(), Wish(sizes=(4, 24), strategy="node"))
    assert cpus(placement) == [numbered(24, 4), numbered(0, 24)]
    assert "(6 cores in all) with --strategy node" in refusal(c5_metal(), Wish(sizes=(1, 1, 4), strategy="node"))


def test_smt_reserve_and_kind() -> None:
    """The rules for equal instances hold."""
    assert cpus(place(uniform(cores_per_node=4, smt=2), Wish(sizes=(1, 2), smt="all"))) == [(2, 6), (0, 1, 4, 5)]
    assert cpus(place(hybrid_1370p(), Wish(sizes=(1, 3), core_kind="efficiency"))) == [(15,), (12, 13, 14)]
    reserved = place(uniform(cores_per_node=4), Wish(sizes=(1, 2), reserve=1))
    assert (reserved.reserved, reserved.idle) == ((3,), ())
    assert "4 cores in all): there are 3 usable performance cores besides 1 reserved" in refusal(
        uniform(cores_per_node=4), Wish(sizes=(1, 3), reserve=1)
    )


def test_more_than_there_is() -> None:
    """The message says what the instances need, and what there is."""
    message = refusal(uniform(packages=2, cores_per_node=4), Wish(sizes=(1, 1, 8)))
    assert message == (
        "cannot place 2 instances of 1 core and 1 instance of 8 cores (10 cores in all): there are 8 usable "
        "performance cores (2 nodes of 4 cores); ask for fewer instances, or smaller ones"
    )


def test_quota_counts_all_threads() -> None:
    """A quota of 4.9 holds 4 threads: 1+1+2 of one a core, and not 1+2 of two."""
    machine = uniform(cores_per_node=8, smt=2, cpu_quota=4.9)
    assert cpus(place(machine, Wish(sizes=(1, 1, 2)))) == [(2,), (3,), (0, 1)]
    assert "quota of 4.9 lets 4 threads" in refusal(machine, Wish(sizes=(1, 2), smt="all"))
    assert "quota of 2 lets 2 threads" in refusal(container_2cpu(), Wish(sizes=(1, 2)))


def test_nodes_with_memory_first() -> None:
    """Where the first node has no memory, instances go to the other."""
    machine = uniform(packages=2, cores_per_node=4)
    empty = msgspec.structs.replace(machine.nodes[0], memory_bytes=0)
    machine = msgspec.structs.replace(machine, nodes=(empty, machine.nodes[1]))
    assert nodes(place(machine, Wish(sizes=(1, 2)))) == [(1,), (1,)]


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(sizes=(1, 0)), "an instance of 0 cores was asked for"),
        (Wish(sizes=(1,), instances=1), "leave out --instances, --cores and --bind"),
        (Wish(sizes=(1,), bind="0"), "leave out --instances, --cores and --bind"),
    ],
)
def test_what_makes_no_sense(wish: Wish, said: str) -> None:
    """Sizes are at least 1, and all that is said of numbers."""
    assert said in refusal(c5_metal(), wish)


def test_many_instances_on_a_large_machine() -> None:
    """A thousand and more instances are placed, deeper than Python calls functions in each other."""
    machine = uniform(packages=8, cores_per_node=160)
    placement = place(machine, Wish(sizes=(*[1] * 1080, *[8] * 25)))
    assert sum(len(instance.cpus) for instance in placement.instances) == 1280
    assert placement.warnings == ()
