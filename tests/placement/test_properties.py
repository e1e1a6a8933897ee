"""What must be true of every placement, on random machines and wishes."""

import math
from collections import Counter
from collections.abc import Iterable

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pinstripe.errors import PlacementError
from pinstripe.machine import Core, CoreKind, Machine, Node, format_cpu_list
from pinstripe.placement import InstancePlacement, Placement, Wish, place

PATIENT = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
"""On a busy machine an example may take its time; and many random machines cannot hold a random wish."""


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Draw unequal nodes with sparse ids, CPUs numbered anyhow, SMT and kinds mixed, and limits of every sort."""
    sizes = draw(st.dictionaries(st.one_of(st.none(), st.integers(0, 99)), st.integers(0, 6), min_size=2, max_size=4))
    ids = sorted(node for node in sizes if node is not None)
    homes = [node for node, size in sizes.items() for _ in range(size)] or [next(iter(sizes))]
    # Multiples modulo a prime are all different, and in no order.
    factor = draw(st.integers(1, 52))
    numbers = iter([factor * place % 53 for place in range(1, 53)])
    siblings = [
        tuple(sorted(next(numbers) for _ in range(2 if twin else 1))) for twin in choices(draw, len(homes), usual=True)
    ]
    online = tuple(sorted(cpu for cpus in siblings for cpu in cpus))
    kinds: list[CoreKind] = ["efficiency" if one else "performance" for one in choices(draw, len(homes), usual=False)]
    halves = list(zip(homes, choices(draw, len(homes), usual=False), strict=True))
    caches = list(dict.fromkeys(halves)) if draw(st.booleans()) else []
    cores = [
        Core(cpus=cpus, package=None, node=half[0], l3=caches.index(half) if caches else None, kind=kind)
        for cpus, half, kind in zip(siblings, halves, kinds, strict=True)
    ]
    table = draw(st.booleans())
    return Machine(
        online=online,
        allowed=some(draw, online, usual=True),
        isolated=some(draw, online, usual=False),
        cores=tuple(sorted(cores, key=lambda core: core.cpus)),
        packages=(online,),
        l3=tuple(cpus_of(core for core in cores if core.l3 == index) for index in range(len(caches))),
        nodes=tuple(
            Node(
                id=node,
                cpus=cpus_of(core for core in cores if core.node == node),
                memory_bytes=draw(st.sampled_from([0, 1 << 30])),
                neighbours=tuple(draw(st.permutations([other for other in ids if other != node]))) if table else (),
            )
            for node in ids
        ),
        allowed_nodes=some(draw, tuple(ids), usual=True),
        cpu_quota=draw(st.one_of(st.none(), st.floats(0.1, 20))),
    )


def cpus_of(cores: Iterable[Core]) -> tuple[int, ...]:
    """Return the CPUs of cores."""
    return tuple(sorted(cpu for core in cores for cpu in core.cpus))


def choices(draw: st.DrawFn, count: int, *, usual: bool) -> list[bool]:
    """Draw yes or no `count` times: often all `usual`, else mixed (one draw of a number is quicker than many)."""
    everything = (1 << count) - 1
    mask = draw(st.one_of(st.just(0), st.integers(0, everything)))
    return [bool(mask >> index & 1) != usual for index in range(count)]


def some(draw: st.DrawFn, numbers: tuple[int, ...], *, usual: bool) -> tuple[int, ...]:
    """Draw some of the numbers: often all of them if that is usual, or else none."""
    return tuple(
        number for number, chosen in zip(numbers, choices(draw, len(numbers), usual=usual), strict=True) if chosen
    )


NUMBERS = st.one_of(st.none(), st.integers(1, 5))
WISHES = st.builds(
    Wish,
    instances=NUMBERS,
    cores=NUMBERS,
    strategy=st.sampled_from(["close", "scatter", "l3", "node"]),
    smt=st.sampled_from(["one", "all"]),
    core_kind=st.sampled_from(["performance", "all", "efficiency"]),
    reserve=st.integers(0, 2),
)
SIZED = st.builds(
    Wish,
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5).map(tuple),
    strategy=st.sampled_from(["close", "scatter", "l3", "node"]),
    smt=st.sampled_from(["one", "all"]),
    core_kind=st.sampled_from(["performance", "all", "efficiency"]),
    reserve=st.integers(0, 2),
)


def attempt(machine: Machine, wish: Wish) -> Placement | None:
    """Return the placement, or None where it is refused in one line."""
    try:
        return place(machine, wish)
    except PlacementError as error:
        message = str(error)
    assert message
    assert "\n" not in message
    return None


def granted(machine: Machine, wish: Wish) -> Placement:
    """Return the placement, and leave out examples where it is refused."""
    placement = attempt(machine, wish)
    assume(placement is not None)
    assert placement is not None
    return placement


def cores_of(machine: Machine, instance: InstancePlacement) -> list[Core]:
    """Return the cores that an instance runs on."""
    return [core for core in machine.cores if set(core.cpus) & set(instance.cpus)]


def usable_cores(machine: Machine, wish: Wish, reserved: tuple[int, ...]) -> list[Core]:
    """Return the cores that instances may run on."""
    cpus = set(machine.allowed) - set(machine.isolated) - set(reserved)
    return [core for core in machine.cores if set(core.cpus) & cpus and wish.core_kind in {"all", core.kind}]


def node_sizes(cores: list[Core]) -> list[int]:
    """Return the number of cores of each node."""
    return list(Counter(core.node for core in cores).values())


@PATIENT
@given(machines(), st.one_of(WISHES, SIZED))
def test_every_allowed_core_is_used_idle_or_reserved(machine: Machine, wish: Wish) -> None:
    """Instances are disjoint and usable, and with what is idle and reserved they make up the allowed CPUs."""
    placement = granted(machine, wish)
    used = [cpu for instance in placement.instances for cpu in instance.cpus]
    assert len(used) == len(set(used))
    assert set(used) <= set(machine.allowed) - set(machine.isolated)
    siblings = {cpu for core in machine.cores if set(core.cpus) & set(used) for cpu in core.cpus}
    parts = [*(siblings & set(machine.allowed)), *placement.idle, *placement.reserved]
    assert sorted(parts) == list(machine.allowed)
    reserved = [core for core in machine.cores if set(core.cpus) & set(placement.reserved)]
    assert len(reserved) == wish.reserve


@PATIENT
@given(machines(), WISHES)
def test_instances_are_equal_and_as_wished(machine: Machine, wish: Wish) -> None:
    """All instances have the same number of cores, of the wished kind, with the wished threads."""
    placement = granted(machine, wish)
    cores = [cores_of(machine, instance) for instance in placement.instances]
    sizes = {len(members) for members in cores}
    assert len(sizes) == 1
    assert wish.cores is None or sizes == {wish.cores}
    assert wish.instances in {None, len(cores)}
    assert all(wish.core_kind in {"all", core.kind} for members in cores for core in members)
    free = set(machine.allowed) - set(machine.isolated)
    for instance, members in zip(placement.instances, cores, strict=True):
        offered = [sorted(free & set(core.cpus)) for core in members]
        expected = [cpu for cpus in offered for cpu in (cpus if wish.smt == "all" else cpus[:1])]
        assert list(instance.cpus) == sorted(expected)


@PATIENT
@given(machines(), WISHES)
def test_threads_keep_to_the_quota(machine: Machine, wish: Wish) -> None:
    """There are never more threads than the quota rounded down, or one; a quota that binds is said."""
    placement = granted(machine, wish)
    threads = sum(len(instance.cpus) for instance in placement.instances)
    if machine.cpu_quota is not None:
        assert threads <= max(1, math.floor(machine.cpu_quota))
        unlimited = place(msgspec.structs.replace(machine, cpu_quota=None), wish)
        said = any("quota" in warning for warning in placement.warnings)
        assert said == (unlimited.instances != placement.instances)


@PATIENT
@given(machines(), WISHES)
def test_no_instance_crosses_nodes_unless_it_must(machine: Machine, wish: Wish) -> None:
    """Crossing is for explicit sizes that nodes cannot hold as often, and for the one instance of all cores."""
    placement = granted(machine, wish)
    crossing = [
        number
        for number, instance in enumerate(placement.instances)
        if len({core.node for core in cores_of(machine, instance)}) > 1
    ]
    said = [warning for warning in placement.warnings if "crosses nodes" in warning]
    assert len(said) == len(crossing)
    size = len(cores_of(machine, placement.instances[0]))
    sizes = node_sizes(usable_cores(machine, wish, placement.reserved))
    held = sum(cores // size for cores in sizes)
    assert len(crossing) == max(0, len(placement.instances) - held)
    if crossing:
        assert wish.strategy in {"close", "scatter"}
        assert wish.cores is not None or len(placement.instances) == 1


@PATIENT
@given(machines(), WISHES)
def test_a_crossing_instance_covers_the_fewest_nodes(machine: Machine, wish: Wish) -> None:
    """The first instance of all that cross has as many nodes as the largest of them need to hold it."""
    placement = granted(machine, msgspec.structs.replace(wish, instances=1))
    members = cores_of(machine, placement.instances[0])
    sizes = sorted(node_sizes(usable_cores(machine, wish, placement.reserved)), reverse=True)
    fewest = next(count for count in range(1, len(sizes) + 1) if sum(sizes[:count]) >= len(members))
    assert len({core.node for core in members}) == fewest


@PATIENT
@given(machines(), WISHES)
def test_shares_are_as_large_as_can_be(machine: Machine, wish: Wish) -> None:
    """One more core for each of several instances would not fit into nodes; a single instance has all cores."""
    machine = msgspec.structs.replace(machine, cpu_quota=None)
    strategy = "close" if wish.strategy in {"node", "l3"} else wish.strategy
    placement = granted(machine, msgspec.structs.replace(wish, cores=None, strategy=strategy))
    size = len(cores_of(machine, placement.instances[0]))
    sizes = node_sizes(usable_cores(machine, wish, placement.reserved))
    if len(placement.instances) == 1:
        assert size == sum(sizes)
    else:
        assert sum(cores // (size + 1) for cores in sizes) < len(placement.instances)


@PATIENT
@given(machines(), WISHES)
def test_only_what_is_impossible_is_refused(machine: Machine, wish: Wish) -> None:
    """Close and scatter refuse exactly what needs more cores than there are."""
    strategy = "scatter" if wish.strategy in {"node", "l3"} else wish.strategy
    wish = msgspec.structs.replace(wish, strategy=strategy, reserve=0)
    machine = msgspec.structs.replace(machine, cpu_quota=None)
    possible = (wish.instances or 1) * (wish.cores or 1) <= len(usable_cores(machine, wish, ()))
    assert (attempt(machine, wish) is not None) == possible


@PATIENT
@given(machines(), st.one_of(WISHES, SIZED), st.sampled_from(["l3", "node"]))
def test_strategies_keep_their_word(machine: Machine, wish: Wish, strategy: str) -> None:
    """With l3 an instance has one level-3 group; with node it is alone on one node."""
    placement = granted(machine, msgspec.structs.replace(wish, strategy=strategy))
    members = [cores_of(machine, instance) for instance in placement.instances]
    homes = [{(core.node, core.l3 if strategy == "l3" else None) for core in cores} for cores in members]
    assert all(len(home) == 1 for home in homes)
    if strategy == "node":
        assert len({node for home in homes for node, _ in home}) == len(homes)


@PATIENT
@given(machines(), WISHES)
def test_scatter_is_fair_to_nodes(machine: Machine, wish: Wish) -> None:
    """With scatter, a node that has room for one more instance has at most one less than any other."""
    placement = granted(machine, msgspec.structs.replace(wish, strategy="scatter"))
    members = [cores_of(machine, instance) for instance in placement.instances]
    assume(all(len({core.node for core in cores}) == 1 for cores in members))
    dealt = Counter(cores[0].node for cores in members)
    left = Counter(core.node for core in usable_cores(machine, wish, placement.reserved))
    left.subtract(core.node for cores in members for core in cores)
    assert all(dealt[node] >= max(dealt.values()) - 1 for node in left if left[node] >= len(members[0]))


@PATIENT
@given(machines(), st.one_of(WISHES, SIZED))
def test_memory_nodes_can_give_memory(machine: Machine, wish: Wish) -> None:
    """Memory comes from allowed nodes that have some: the instance's own where they do."""
    placement = granted(machine, wish)
    unknown = all(node.memory_bytes == 0 for node in machine.nodes)
    giving = {node.id for node in machine.nodes if unknown or node.memory_bytes} & set(machine.allowed_nodes)
    for instance in placement.instances:
        own = {core.node for core in cores_of(machine, instance)}
        assert list(instance.nodes) == sorted(set(instance.nodes))
        assert own & giving <= set(instance.nodes) <= giving
        if len(own - {None}) > 0 and giving:
            assert instance.nodes


@PATIENT
@given(machines(), st.one_of(WISHES, SIZED))
def test_the_same_wish_gives_the_same_placement(machine: Machine, wish: Wish) -> None:
    """A machine that went through a file is placed on like the original."""
    copy = msgspec.json.decode(msgspec.json.encode(machine), type=Machine)
    assert attempt(copy, wish) == attempt(machine, wish)


def most_held(sizes: list[int], instances: tuple[int, ...], *, alone: bool) -> int:
    """Return how many of the instances find room within groups of these sizes, by trying every way."""
    if not instances:
        return 0
    first, *others = instances
    best = most_held(sizes, tuple(others), alone=alone)
    for index, size in enumerate(sizes):
        if size >= first:
            left = [*sizes[:index], 0 if alone else size - first, *sizes[index + 1 :]]
            best = max(best, 1 + most_held(left, tuple(others), alone=alone))
    return best


def group_sizes(cores: list[Core], strategy: str) -> list[int]:
    """Return the number of cores of each node or, for l3, of each cache in it (of the node's rest, where unknown)."""
    if strategy != "l3":
        return node_sizes(cores)
    return list(Counter((core.node, core.l3) for core in cores).values())


@PATIENT
@given(machines(), SIZED)
def test_sizes_are_as_wished(machine: Machine, wish: Wish) -> None:
    """Each instance has the number of cores that is named for it, of the wished kind, with the wished threads."""
    placement = granted(machine, wish)
    free = set(machine.allowed) - set(machine.isolated)
    assert len(placement.instances) == len(wish.sizes)
    for size, instance in zip(wish.sizes, placement.instances, strict=True):
        members = cores_of(machine, instance)
        offered = [sorted(free & set(core.cpus)) for core in members]
        expected = [cpu for cpus in offered for cpu in (cpus if wish.smt == "all" else cpus[:1])]
        assert len(members) == size
        assert all(wish.core_kind in {"all", core.kind} for core in members)
        assert list(instance.cpus) == sorted(expected)
    threads = sum(len(instance.cpus) for instance in placement.instances)
    assert threads <= (math.inf if machine.cpu_quota is None else max(1, math.floor(machine.cpu_quota)))


@PATIENT
@given(machines(), SIZED)
def test_as_few_of_several_sizes_cross_as_can_be(machine: Machine, wish: Wish) -> None:
    """No way to deal instances out over nodes lets more of them stay within one; those that do not are said."""
    wish = msgspec.structs.replace(wish, strategy="scatter" if wish.strategy in {"node", "l3"} else wish.strategy)
    placement = granted(machine, wish)
    homes = [{core.node for core in cores_of(machine, instance)} for instance in placement.instances]
    sizes = node_sizes(usable_cores(machine, wish, placement.reserved))
    crossing = sum(len(home) > 1 for home in homes)
    assert len(homes) - crossing == most_held(sizes, wish.sizes, alone=False)
    assert len([warning for warning in placement.warnings if "crosses nodes" in warning]) == crossing


@PATIENT
@given(machines(), SIZED)
def test_only_sizes_that_cannot_be_had_are_refused(machine: Machine, wish: Wish) -> None:
    """Close and scatter refuse what needs more cores than there are, the others what no way of dealing out holds."""
    machine = msgspec.structs.replace(machine, cpu_quota=None)
    wish = msgspec.structs.replace(wish, reserve=0)
    cores = usable_cores(machine, wish, ())
    possible = sum(wish.sizes) <= len(cores)
    if wish.strategy in {"l3", "node"}:
        held = most_held(group_sizes(cores, wish.strategy), wish.sizes, alone=wish.strategy == "node")
        possible = held == len(wish.sizes)
    assert (attempt(machine, wish) is not None) == possible


@PATIENT
@given(machines(), WISHES)
def test_equal_sizes_are_placed_as_equal_instances(machine: Machine, wish: Wish) -> None:
    """To name a size several times is to name a number of instances of that size."""
    count, size = wish.instances or 2, wish.cores or 1
    strategy = "close" if wish.strategy == "node" else wish.strategy
    equal = msgspec.structs.replace(wish, instances=count, cores=size, strategy=strategy)
    placement = granted(machine, equal)
    assume(not any("crosses" in warning for warning in placement.warnings))
    sized = msgspec.structs.replace(equal, instances=None, cores=None, sizes=(size,) * count)
    assert place(machine, sized).instances == placement.instances


@PATIENT
@given(machines(), st.data())
def test_bound_instances_run_where_they_are_told(machine: Machine, data: st.DataObject) -> None:
    """Any partition of allowed CPUs can be bound to, up to the quota."""
    parts = data.draw(st.lists(st.sets(st.sampled_from(machine.online), min_size=1), min_size=1, max_size=3))
    placement = attempt(machine, Wish(bind="|".join(map(format_cpu_list, parts))))
    named = [cpu for part in parts for cpu in part]
    limit = math.inf if machine.cpu_quota is None else max(1, math.floor(machine.cpu_quota))
    possible = len(named) == len(set(named)) <= limit and set(named) <= set(machine.allowed)
    assert (placement is not None) == possible
    if placement is not None:
        assert [set(instance.cpus) for instance in placement.instances] == parts
        used = [core for core in machine.cores if set(core.cpus) & set(named)]
        free = set(machine.allowed) - {cpu for core in used for cpu in core.cpus}
        assert placement.idle == tuple(sorted(free))
