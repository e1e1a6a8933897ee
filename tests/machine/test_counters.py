"""Counters of lost time."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pinstripe.errors import MachineError
from pinstripe.machine import Counters, read_counters, read_idle_ns

Grow = Callable[[Mapping[str, str]], Path]

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


def test_version_2(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Version 2 counts microseconds; groups that throttle are added up, and the root has no quota of its own."""
    own = "usage_usec 9\nnr_periods 100\nnr_throttled 7\nthrottled_usec 2500\nnr_bursts 0\n"
    parent = "usage_usec 9\nnr_periods 50\nnr_throttled 1\nthrottled_usec 500\n"
    files = {"proc/self/cgroup": "0::/pod/job\n", "sys/fs/cgroup/cpu.stat": "usage_usec 5\n"}
    files |= {"sys/fs/cgroup/pod/cpu.stat": parent, "sys/fs/cgroup/pod/job/cpu.stat": own}
    counters = read_counters(grow(four_cpus | files))
    assert (counters.nr_periods, counters.nr_throttled, counters.throttled_ns) == (150, 8, 3_000_000)


def test_version_1(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Version 1 counts nanoseconds."""
    stat = "nr_periods 4\nnr_throttled 3\nthrottled_time 12345678\n"
    files = {"proc/self/cgroup": "2:cpu:/\n", "sys/fs/cgroup/cpu/cpu.stat": stat}
    counters = read_counters(grow(four_cpus | files))
    assert (counters.nr_periods, counters.nr_throttled, counters.throttled_ns) == (4, 3, 12345678)


def test_steal_and_busy_of_allowed_cpus(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Only allowed CPUs count; waiting is not busy, and guests are in user time already."""
    stat = "cpu  999 999 999 999 999 999 999 999 999 999\n"
    stat += "".join(f"cpu{cpu} 1{cpu} 2 3 1000 500 4 5 6{cpu} 7 8\n" for cpu in range(4))
    files = {"proc/stat": stat + "intr 1 2 3\n", "proc/self/status": "Cpus_allowed_list:\t1,3\n"}
    root = grow(four_cpus | files)
    counters = read_counters(root)
    assert counters.busy_ns == (11 + 2 + 3 + 4 + 5 + 13 + 2 + 3 + 4 + 5) * TICK_NS
    assert counters.steal_ns == (61 + 63) * TICK_NS
    assert read_idle_ns(root) == 2 * (1000 + 500) * TICK_NS


def test_idle_time_is_unknown_without_columns(grow: Grow, four_cpus: dict[str, str]) -> None:
    """As steal and busy time are."""
    assert read_idle_ns(grow(four_cpus)) is None


def test_steal_and_busy_of_the_cpus_asked_for(grow: Grow, four_cpus: dict[str, str]) -> None:
    """A parent that sits on spare CPUs still counts those of its workers."""
    stat = "".join(f"cpu{cpu} 1{cpu} 0 0 1000 500 0 0 6{cpu} 7 8\n" for cpu in range(4))
    files = {"proc/stat": stat, "proc/self/status": "Cpus_allowed_list:\t3\n"}
    counters = read_counters(grow(four_cpus | files), cpus=(0, 2))
    assert counters.busy_ns == (10 + 12) * TICK_NS
    assert counters.steal_ns == (60 + 62) * TICK_NS


@pytest.mark.parametrize(
    "stat",
    [
        pytest.param("cpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\n", id="renumbered by a container"),
        pytest.param("".join(f"cpu{cpu} 1 2 3 4\n" for cpu in range(4)), id="old kernel"),
        pytest.param("".join(f"cpu{cpu} a b c d e f g h\n" for cpu in range(4)), id="malformed"),
        pytest.param("", id="empty"),
    ],
)
def test_unknown(grow: Grow, four_cpus: dict[str, str], stat: str) -> None:
    """What is not known for every allowed CPU is None, and so is throttling without control groups."""
    unknown = Counters(nr_periods=None, nr_throttled=None, throttled_ns=None, steal_ns=None, busy_ns=None)
    assert read_counters(grow(four_cpus | {"proc/stat": stat})) == unknown


def test_since() -> None:
    """The difference is by counter; unknown where one side is, or where the counter went backwards."""
    earlier = Counters(nr_periods=10, nr_throttled=2, throttled_ns=None, steal_ns=500, busy_ns=70)
    later = Counters(nr_periods=15, nr_throttled=2, throttled_ns=9, steal_ns=400, busy_ns=100)
    grown = Counters(nr_periods=5, nr_throttled=0, throttled_ns=None, steal_ns=None, busy_ns=30)
    assert later.since(earlier) == grown


def test_no_machine(tmp_path: Path) -> None:
    """A root without CPUs is the same error as for the machine."""
    with pytest.raises(MachineError, match="does not exist"):
        read_counters(tmp_path)


def test_live_busy_time_grows() -> None:
    """On the running system, work of this process shows in the busy time of its CPUs."""
    earlier = read_counters()
    if earlier.busy_ns is None:
        pytest.skip("this system does not say how busy its CPUs are")
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    busy_ns = read_counters().since(earlier).busy_ns
    assert busy_ns is not None
    assert busy_ns >= 0.1e9
