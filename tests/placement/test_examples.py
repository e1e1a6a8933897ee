"""Wishes on known machines, against placements worked out on paper."""

from collections.abc import Mapping

import msgspec
import pytest

from pinstripe.errors import PlacementError
from pinstripe.machine import Core, Machine, Node
from pinstripe.placement import Placement, Wish, place
from pinstripe.testing.machines import c5_metal, container_2cpu, epyc_7742_nps4, hybrid_1370p, uniform

VMWARE = uniform(packages=2, nodes_per_package=2, cores_per_node=2, smt=2, numbering="adjacent")
RYZEN_1600 = uniform(cores_per_node=6, smt=2, cores_per_l3=3)


def numbered(first: int, count: int, step: int = 1) -> tuple[int, ...]:
    """Return `count` CPUs from `first` on."""
    return tuple(range(first, first + count * step, step))


def cpus(placement: Placement) -> list[tuple[int, ...]]:
    """Return the CPUs of each instance."""
    return [instance.cpus for instance in placement.instances]


def nodes(placement: Placement) -> list[tuple[int, ...]]:
    """Return the memory nodes of each instance."""
    return [instance.nodes for instance in placement.instances]


def unequal(sizes: dict[int | None, int], neighbours: Mapping[int, tuple[int, ...]] = {}) -> Machine:
    """Build a machine without SMT of nodes with these numbers of cores, numbered one node after the other."""
    cores: list[Core] = []
    for node, size in sizes.items():
        cores += [
            Core(cpus=(cpu,), package=0, node=node, l3=None, kind="performance") for cpu in numbered(len(cores), size)
        ]
    online = numbered(0, len(cores))
    ids = [node for node in sizes if node is not None]
    return Machine(
        online=online,
        allowed=online,
        cores=tuple(cores),
        packages=(online,),
        l3=(),
        nodes=tuple(
            Node(
                id=node,
                cpus=tuple(core.cpus[0] for core in cores if core.node == node),
                memory_bytes=1 << 30,
                neighbours=neighbours.get(node, tuple(other for other in ids if other != node)),
            )
            for node in ids
        ),
        allowed_nodes=tuple(ids),
    )


def refusal(machine: Machine, wish: Wish) -> str:
    """Return the message that the wish is refused with."""
    with pytest.raises(PlacementError) as caught:
        place(machine, wish)
    return str(caught.value)


def test_one_instance_a_socket_on_two_sockets() -> None:
    """Each of 2 instances gets the 24 first threads of a socket, and its memory."""
    placement = place(c5_metal(), Wish(instances=2))
    assert cpus(placement) == [numbered(0, 24), numbered(24, 24)]
    assert nodes(placement) == [(0,), (1,)]
    assert (placement.idle, placement.reserved, placement.warnings) == ((), (), ())


def test_four_instances_on_two_sockets() -> None:
    """Each of 4 instances gets half a socket."""
    placement = place(c5_metal(), Wish(instances=4))
    assert cpus(placement) == [numbered(0, 12), numbered(12, 12), numbered(24, 12), numbered(36, 12)]
    assert nodes(placement) == [(0,), (0,), (1,), (1,)]


def test_scatter_deals_over_nodes() -> None:
    """With scatter, instance 1 is on the other socket than instance 0, and instance 2 back on the first."""
    placement = place(c5_metal(), Wish(instances=4, strategy="scatter"))
    assert cpus(placement) == [numbered(0, 12), numbered(24, 12), numbered(12, 12), numbered(36, 12)]


def test_close_leaves_the_second_node_idle_where_the_first_suffices() -> None:
    """Three instances of 8 cores fill the first socket; the second is idle with both threads of each core."""
    placement = place(c5_metal(), Wish(instances=3, cores=8))
    assert cpus(placement) == [numbered(0, 8), numbered(8, 8), numbered(16, 8)]
    assert placement.idle == numbered(24, 24) + numbered(72, 24)


def test_default_is_one_instance_of_all_cores() -> None:
    """Without numbers one instance gets every core; that it crosses nodes is said, and it interleaves."""
    placement = place(c5_metal(), Wish())
    assert cpus(placement) == [numbered(0, 48)]
    assert nodes(placement) == [(0, 1)]
    [warning] = placement.warnings
    assert "crosses" in warning
    assert "node 0, node 1" in warning
    assert place(c5_metal(), Wish(instances=1)) == placement


def test_adjacent_siblings_are_one_core() -> None:
    """Where siblings have adjacent numbers, 4 instances get 2 cores each, not 1 core twice."""
    placement = place(VMWARE, Wish(instances=4))
    assert cpus(placement) == [(0, 2), (4, 6), (8, 10), (12, 14)]
    assert nodes(placement) == [(0,), (1,), (2,), (3,)]
    assert placement.idle == ()


def test_all_threads_of_cores() -> None:
    """With all threads, both siblings of each core run one."""
    placement = place(VMWARE, Wish(instances=4, smt="all"))
    assert cpus(placement) == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15)]


def test_cores_of_four_threads() -> None:
    """On a POWER7 of 8 nodes, an instance a node runs on every fourth CPU."""
    power7 = uniform(packages=8, cores_per_node=8, smt=4, numbering="adjacent")
    assert cpus(place(power7, Wish(instances=8))) == [numbered(first, 8, 4) for first in range(0, 256, 32)]


def test_fewer_instances_than_nodes_stay_within_nodes() -> None:
    """Three instances on 4 nodes take a node each rather than cross; the fourth node is listed as idle."""
    placement = place(VMWARE, Wish(instances=3))
    assert cpus(placement) == [(0, 2), (4, 6), (8, 10)]
    assert placement.idle == (12, 13, 14, 15)


def test_more_instances_than_nodes_stay_equal() -> None:
    """Three instances on 2 nodes of 4 cores get 2 cores each: 3 cores would leave one of them without a node."""
    placement = place(unequal({0: 4, 1: 4}), Wish(instances=3))
    assert cpus(placement) == [(0, 1), (2, 3), (4, 5)]
    assert placement.idle == (6, 7)


def test_cores_alone_fill_the_machine() -> None:
    """With only a size, as many instances as fit within nodes: 2 of 10 cores in each socket of 24."""
    placement = place(c5_metal(), Wish(cores=10))
    assert cpus(placement) == [numbered(0, 10), numbered(10, 10), numbered(24, 10), numbered(34, 10)]
    assert placement.idle == tuple(sorted([*numbered(20, 4), *numbered(44, 4), *numbered(68, 4), *numbered(92, 4)]))


def test_an_instance_crosses_to_the_nearest_node() -> None:
    """Six cores don't fit into nodes of 4; node 0's nearest neighbour is node 2, so these two are crossed."""
    neighbours = {0: (2, 1, 3), 1: (3, 0, 2), 2: (0, 1, 3), 3: (1, 0, 2)}
    placement = place(unequal({0: 4, 1: 4, 2: 4, 3: 4}, neighbours), Wish(instances=1, cores=6))
    assert cpus(placement) == [(0, 1, 2, 3, 8, 9)]
    assert nodes(placement) == [(0, 2)]
    assert "crosses nodes (node 0, node 2)" in placement.warnings[0]


def test_an_instance_crosses_the_fewest_nodes() -> None:
    """Seven cores are held by nodes 0 and 3 alone, however far they are, and not by nodes 0, 1 and 2."""
    placement = place(unequal({0: 4, 1: 2, 2: 2, 3: 4}), Wish(instances=1, cores=7))
    assert cpus(placement) == [(0, 1, 2, 3, 8, 9, 10)]


def test_crossed_nodes_are_near_each_other() -> None:
    """With a cpuset of nodes 0, 2 and 3 of 2 sockets, the two on the same socket are crossed, not 0 and 2."""
    machine = uniform(packages=2, nodes_per_package=2, cores_per_node=4)
    machine = msgspec.structs.replace(machine, allowed=(*numbered(0, 4), *numbered(8, 8)))
    assert nodes(place(machine, Wish(instances=1, cores=8))) == [(2, 3)]


def test_only_the_instance_that_must_crosses() -> None:
    """Three instances of 2 cores on 2 nodes of 3: two stay within, the third takes what is left of both."""
    placement = place(unequal({0: 3, 1: 3}), Wish(instances=3, cores=2))
    assert cpus(placement) == [(0, 1), (3, 4), (2, 5)]
    assert nodes(placement) == [(0,), (1,), (0, 1)]
    assert len(placement.warnings) == 1


def test_performance_cores_by_default() -> None:
    """A Core i7-1370P runs on the first threads of its 6 P-cores; its E-cores are idle."""
    placement = place(hybrid_1370p(), Wish())
    assert cpus(placement) == [(0, 2, 4, 6, 8, 10)]
    assert placement.idle == numbered(12, 8)


def test_efficiency_and_all_cores() -> None:
    """E-cores can be asked for alone, and all 14 cores together."""
    assert cpus(place(hybrid_1370p(), Wish(core_kind="efficiency", instances=2))) == [numbered(12, 4), numbered(16, 4)]
    assert cpus(place(hybrid_1370p(), Wish(core_kind="all"))) == [(0, 2, 4, 6, 8, 10, *numbered(12, 8))]


def test_efficiency_cores_that_do_not_exist() -> None:
    """A machine of one kind has performance cores; asking for others says so."""
    assert "all 48 cores that this process may use are performance" in refusal(c5_metal(), Wish(core_kind="efficiency"))


def test_l3_strategy_gives_a_group_each() -> None:
    """On a Ryzen 1600 each core complex is an instance; on an EPYC 7742 all 16 of them."""
    assert cpus(place(RYZEN_1600, Wish(strategy="l3"))) == [(0, 1, 2), (3, 4, 5)]
    assert cpus(place(epyc_7742_nps4(), Wish(strategy="l3"))) == [numbered(first, 4) for first in range(0, 64, 4)]


def test_l3_strategy_never_crosses_a_group() -> None:
    """Two cores an instance leave the third of each complex idle; four cores are refused."""
    placement = place(RYZEN_1600, Wish(strategy="l3", cores=2))
    assert cpus(placement) == [(0, 1), (3, 4)]
    assert placement.idle == (2, 5, 8, 11)
    assert "possible: 1 instance of 3 cores" in refusal(RYZEN_1600, Wish(strategy="l3", cores=4))


def test_l3_strategy_uses_most_cores_of_unequal_groups() -> None:
    """With CPU 5 taken away, 2 instances of 2 cores use more than 1 of 3."""
    machine = msgspec.structs.replace(RYZEN_1600, allowed=(0, 1, 2, 3, 4, 6, 7, 8, 9, 10))
    assert cpus(place(machine, Wish(strategy="l3"))) == [(0, 1), (3, 4)]


def test_unknown_l3_falls_back_to_the_package() -> None:
    """Without level-3 caches known, the package inside a node bounds the instance, and that is said."""
    placement = place(unequal({0: 4, 1: 4}), Wish(strategy="l3"))
    assert cpus(placement) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert "within a package" in placement.warnings[0]


def test_close_keeps_to_l3_groups() -> None:
    """Instances of 2 out of groups of 3 cores stay within a group each, rather than straddle two."""
    assert cpus(place(RYZEN_1600, Wish(instances=2, cores=2))) == [(0, 1), (3, 4)]


def test_scatter_deals_over_l3_groups_within_a_node() -> None:
    """Four instances of one core alternate between the two groups."""
    assert cpus(place(RYZEN_1600, Wish(instances=4, cores=1, strategy="scatter"))) == [(0,), (3,), (1,), (4,)]


def test_node_strategy_gives_a_node_each() -> None:
    """Sparse, unequal nodes: three equal instances, each alone on its node; what exceeds is idle and said."""
    machine = unequal({0: 16, 2: 8, 3: 8})
    placement = place(machine, Wish(strategy="node"))
    assert cpus(placement) == [numbered(0, 8), numbered(16, 8), numbered(24, 8)]
    assert nodes(placement) == [(0,), (2,), (3,)]
    assert placement.idle == numbered(8, 8)
    assert "8 of 16 cores of node 0" in placement.warnings[0]
    assert cpus(place(machine, Wish(strategy="node", instances=1))) == [numbered(0, 16)]


def test_node_strategy_accepts_only_the_size_of_a_node() -> None:
    """Whole nodes and 5 cores contradict each other."""
    machine = unequal({0: 16, 2: 8, 3: 8})
    assert cpus(place(machine, Wish(strategy="node", cores=16))) == [numbered(0, 16)]
    assert "1 instance of 16 cores or 3 instances of 8 cores" in refusal(machine, Wish(strategy="node", cores=5))


def test_quota_shrinks_and_says_so() -> None:
    """A quota of 2.5 on 8 cores leaves 2 threads, on one node."""
    placement = place(msgspec.structs.replace(unequal({0: 4, 1: 4}), cpu_quota=2.5), Wish())
    assert cpus(placement) == [(0, 1)]
    assert placement.idle == (2, 3, 4, 5, 6, 7)
    [warning] = placement.warnings
    assert "quota of 2.5" in warning
    assert "8 usable cores" in warning


def test_quota_below_one_leaves_one_thread() -> None:
    """Half a CPU is still one thread."""
    assert cpus(place(uniform(cores_per_node=8, cpu_quota=0.5), Wish())) == [(0,)]


def test_quota_counts_threads_not_cores() -> None:
    """Two CPUs' worth of time are one core with both its threads."""
    assert cpus(place(container_2cpu(), Wish())) == [(0, 2)]
    assert cpus(place(container_2cpu(), Wish(smt="all"))) == [(0, 1)]


def test_quota_shares_equally() -> None:
    """Two instances within a quota of 7 get 3 cores each; instances of 3 cores are 2."""
    machine = uniform(cores_per_node=8, cpu_quota=7.0)
    assert cpus(place(machine, Wish(instances=2))) == [(0, 1, 2), (3, 4, 5)]
    assert cpus(place(machine, Wish(cores=3))) == [(0, 1, 2), (3, 4, 5)]


def test_explicit_numbers_beyond_the_quota_are_refused() -> None:
    """The message names the quota and what it leaves."""
    message = refusal(container_2cpu(), Wish(instances=2, cores=2))
    assert "quota of 2 lets 2 threads" in message
    assert "possible: 2 instances of 1 core or 1 instance of 2 cores" in message
    quota_of_one = msgspec.structs.replace(container_2cpu(), cpu_quota=1.0)
    assert "use --smt one" in refusal(quota_of_one, Wish(smt="all"))


def test_reserve_takes_from_the_largest_node_last_cores_first() -> None:
    """Two reserved cores are the last of each node, with both threads, so that instances stay equal."""
    placement = place(c5_metal(), Wish(instances=2, reserve=2))
    assert cpus(placement) == [numbered(0, 23), numbered(24, 23)]
    assert placement.reserved == (23, 47, 71, 95)
    assert placement.idle == ()


def test_reserve_prefers_cores_that_are_not_wished() -> None:
    """Efficiency cores are reserved before any performance core is."""
    placement = place(hybrid_1370p(), Wish(reserve=2))
    assert cpus(placement) == [(0, 2, 4, 6, 8, 10)]
    assert placement.reserved == (18, 19)
    assert placement.idle == numbered(12, 6)
    assert place(hybrid_1370p(), Wish(reserve=9)).reserved == numbered(10, 10)


def test_reserve_leaves_at_least_a_core() -> None:
    """All cores cannot be reserved."""
    assert "reserve at most 5" in refusal(RYZEN_1600, Wish(reserve=6))


def test_isolated_cpus_are_left_out() -> None:
    """Isolated cores are idle; of a half-isolated core the other thread runs."""
    machine = msgspec.structs.replace(RYZEN_1600, isolated=(0, 1, 7))
    placement = place(machine, Wish())
    assert cpus(placement) == [(2, 3, 4, 5, 6)]
    assert placement.idle == (1, 7)
    assert "CPUs 0-1,7" in placement.warnings[0]


def test_only_isolated_cpus_have_to_be_named() -> None:
    """A process that was put on isolated CPUs is told how to use them."""
    machine = msgspec.structs.replace(RYZEN_1600, isolated=(4, 5), allowed=(4, 5))
    assert "--bind 4-5" in refusal(machine, Wish())
    assert cpus(place(machine, Wish(bind="4-5"))) == [(4, 5)]


def test_only_allowed_siblings_run() -> None:
    """Where a cpuset leaves the second threads only, these run."""
    machine = msgspec.structs.replace(RYZEN_1600, allowed=(1, 6, 7, 8))
    placement = place(machine, Wish())
    assert cpus(placement) == [(1, 6, 8)]
    assert placement.idle == ()


def test_no_allowed_cpu() -> None:
    """Nothing allowed is an error, not an empty placement."""
    assert "no CPU may be used" in refusal(msgspec.structs.replace(RYZEN_1600, allowed=()), Wish())


def test_memory_of_a_node_without_any_comes_from_the_nearest() -> None:
    """Node 1 has no memory and node 2 may not be used: both take what their nearest allowed neighbour has."""
    machine = unequal({0: 2, 1: 2, 2: 2, 3: 2}, {1: (2, 3, 0), 2: (1, 0, 3)})
    empty = tuple(msgspec.structs.replace(node, memory_bytes=0) if node.id == 1 else node for node in machine.nodes)
    placement = place(msgspec.structs.replace(machine, nodes=empty, allowed_nodes=(0, 1, 3)), Wish(instances=4))
    assert nodes(placement) == [(0,), (3,), (0,), (3,)]
    assert placement.warnings == (
        "Node 1 has no memory: its cores use that of node 3, the nearest.",
        "Node 2 has no memory that this process may use: its cores use that of node 0, the nearest.",
    )


def test_unknown_memory_sizes_count_as_memory() -> None:
    """Where no node's size is known, every node is taken to have memory."""
    machine = uniform(packages=2, cores_per_node=2, memory_bytes_per_node=0)
    assert nodes(place(machine, Wish(instances=2))) == [(0,), (1,)]


def test_cores_without_a_node_are_apart() -> None:
    """Cores the kernel gives no node form a group of their own; where their memory is remains open."""
    placement = place(unequal({0: 2, 1: 2, None: 2}), Wish(instances=3))
    assert cpus(placement) == [(0, 1), (2, 3), (4, 5)]
    assert nodes(placement) == [(0,), (1,), ()]


def test_machine_without_numa_has_no_memory_nodes() -> None:
    """Without NUMA nothing is crossed and nothing bound."""
    machine = msgspec.structs.replace(unequal({None: 4}))
    placement = place(machine, Wish())
    assert nodes(placement) == [()]
    assert placement.warnings == ()


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(instances=0), "--instances is 0"),
        (Wish(cores=-1), "--cores is -1"),
        (Wish(reserve=-2), "--reserve is -2"),
        (Wish(instances=2, cores=30), "possible: 2 instances of 24 cores or 1 instance of 30 cores"),
        (Wish(cores=49), "there are 48 usable performance cores (2 nodes of 24 cores); possible: 1 instance of 48"),
        (Wish(instances=49), "possible: 48 instances of 1 core"),
        (Wish(instances=2, cores=24, reserve=1), "47 usable performance cores (1 node of 24 cores and 1 node of 23"),
    ],
)
def test_refusals_say_what_can_be_had(wish: Wish, said: str) -> None:
    """Every refusal is one line that says what was wrong and what is possible."""
    message = refusal(c5_metal(), wish)
    assert said in message
    assert "\n" not in message
