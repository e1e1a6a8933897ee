"""Instances on explicitly named CPUs."""

import msgspec
import pytest

from pinstripe.errors import PlacementError
from pinstripe.placement import Wish, place
from pinstripe.testing.machines import c5_metal, uniform

RYZEN_1600 = uniform(cores_per_node=6, smt=2, cores_per_l3=3)


@pytest.mark.parametrize(
    ("bind", "expected"),
    [
        ("0-2|3-5", [(0, 1, 2), (3, 4, 5)]),
        (" 4,0 | 1 ", [(0, 4), (1,)]),
        ("0,6", [(0, 6)]),
        ("all", [tuple(range(12))]),
        ("!2-11", [(0, 1)]),
        ("+0-1,4", [(0, 1, 4)]),
    ],
)
def test_named_cpus_are_used_as_given(bind: str, expected: list[tuple[int, ...]]) -> None:
    """Each form of numactl's syntax names the CPUs its manual says."""
    assert [instance.cpus for instance in place(RYZEN_1600, Wish(bind=bind)).instances] == expected


def test_relative_and_inverted_lists_keep_to_allowed_cpus() -> None:
    """`+` counts within the allowed CPUs, `!` leaves the others of them."""
    machine = msgspec.structs.replace(RYZEN_1600, allowed=(2, 3, 8, 9))
    placement = place(machine, Wish(bind="+0,2|!2,8"))
    assert [instance.cpus for instance in placement.instances] == [(2, 8), (3, 9)]


def test_memory_nodes_and_idle_cores() -> None:
    """Bound instances get their nodes too; cores without a bound thread are idle, unused siblings of others not."""
    placement = place(c5_metal(), Wish(bind="0-22|24-46"))
    assert [instance.nodes for instance in placement.instances] == [(0,), (1,)]
    assert placement.idle == (23, 47, 71, 95)
    assert placement.warnings == ()


def test_crossing_and_shared_cores_are_said() -> None:
    """Bound instances may cross nodes and share cores, with a warning."""
    placement = place(c5_metal(), Wish(bind="23-24|71"))
    assert [instance.nodes for instance in placement.instances] == [(0, 1), (0,)]
    shared, crossing = placement.warnings
    assert "Instances 0 and 1 share cores (CPUs 23,71)" in shared
    assert "crosses nodes (node 0, node 1)" in crossing


def test_agreeing_numbers_are_accepted() -> None:
    """Numbers that say what the CPU lists say do no harm."""
    wish = Wish(bind="0-1|2-3", instances=2, cores=2)
    assert len(place(RYZEN_1600, wish).instances) == 2


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(bind="0-1,99"), "names CPU 99 for instance 0, but not online"),
        (Wish(bind="0|4-5"), "names CPU 5 for instance 1, forbidden by affinity mask or cpuset; allowed are 0-4,6-10"),
        (Wish(bind="0-2|2-4"), "names CPU 2 for more than one instance"),
        (Wish(bind="0,0-2"), "names CPU 0 for instance 0, twice"),
        (Wish(bind="0||1"), "no CPU for instance 1"),
        (Wish(bind=""), "no CPU for instance 0"),
        (Wish(bind="!"), "no CPU for instance 0"),
        (Wish(bind="!all"), "'all' is not a list of CPUs"),
        (Wish(bind="0-|1"), "'0-' is not a list of CPUs"),
        (Wish(bind="3-1"), "'3-1'"),
        (Wish(bind="0,,1"), "'0,,1' is not a list of CPUs"),
        (Wish(bind="0\n1"), "not a list of CPUs"),
        (Wish(bind="+10"), "there is no allowed CPU +10; the 10 allowed ones are +0 to +9"),
        (Wish(bind="0|1", instances=3), "(2 instances of 1 core), against --instances 3"),
        (Wish(bind="0-1|2-3", cores=1), "against --cores 1"),
        (Wish(bind="0", smt="all", core_kind="all"), "against --smt all, --core-kind all"),
        (Wish(bind="0", strategy="l3"), "against --strategy l3"),
        (Wish(bind="0", reserve=1), "against --reserve 1"),
    ],
)
def test_refusals(wish: Wish, said: str) -> None:
    """What cannot be bound is refused in one line that names the CPUs or the option."""
    allowed = (0, 1, 2, 3, 4, 6, 7, 8, 9, 10)
    with pytest.raises(PlacementError) as caught:
        place(msgspec.structs.replace(RYZEN_1600, allowed=allowed), wish)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bind_beyond_the_quota_is_refused() -> None:
    """More CPUs than the quota lets run are refused; as many are not."""
    machine = uniform(cores_per_node=8, cpu_quota=2.5)
    assert len(place(machine, Wish(bind="0|1")).instances) == 2
    with pytest.raises(PlacementError, match=r"names 3 CPUs, but the CPU quota of 2\.5 lets 2 threads"):
        place(machine, Wish(bind="0|1-2"))
