"""Which cores are performance cores and which are efficiency cores."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from pinstripe.machine.description import CoreKind
from pinstripe.machine.limits import CPU_DIRECTORY
from pinstripe.machine.tree import Tree

__all__ = ["core_kinds"]

# The event counters of Intel's small cores exist on hybrid CPUs only and list their CPUs (`lowpower`: the ones outside
# of the ring). See Documentation/admin-guide/perf and ABI/testing/sysfs-bus-event_source-devices of the kernel.
_EFFICIENCY_COUNTERS = ("cpu_atom", "cpu_lowpower")
_PERFORMANCE_COUNTERS = "cpu_core"

# How fast a CPU is, by falling trust: the scheduler's own measure (1024 for the fastest), the performance that the
# firmware promises (ACPI CPPC), and the guaranteed frequency in kHz, which Intel's Speed Select also varies among equal
# cores.
_SPEED_FILES = ("cpu_capacity", "acpi_cppc/highest_perf", "cpufreq/base_frequency")

# Equal cores differ by their bins: 67 to 64 on an i7-1370P, 231 to 166 in steps of 5 on Ryzens with preferred cores.
# Kinds differ by more: 64 to 39, 1900 to 1400 MHz, 855 to 280.
_TOLERANCE = 1.25


def core_kinds(tree: Tree, cores: Sequence[tuple[int, ...]]) -> tuple[CoreKind, ...]:
    """Return the kind of each core; all are performance cores where only one kind is to be seen.

    With three kinds, as on many phones, the slowest against the rest or the fastest against the rest: the split is
    at the widest ratio between neighbouring speeds.

    Args:
        tree: Where to read.
        cores: The CPUs of each core.
    """
    firsts = [core[0] for core in cores]
    efficient = _by_counters(tree, firsts)
    if efficient is None:
        efficient = next((slow for file in _SPEED_FILES if (slow := _by_speed(tree, file, firsts)) is not None), set())
    if efficient.issuperset(firsts):
        efficient = set()
    return tuple("efficiency" if cpu in efficient else "performance" for cpu in firsts)


def _by_counters(tree: Tree, cpus: Sequence[int]) -> set[int] | None:
    """Return the efficiency CPUs; None where the counters do not tell the CPUs apart."""
    listed = {
        name: tree.cpu_list(f"sys/devices/{name}/cpus") or () for name in (_PERFORMANCE_COUNTERS, *_EFFICIENCY_COUNTERS)
    }
    efficient = {cpu for name in _EFFICIENCY_COUNTERS for cpu in listed[name]}
    return efficient if efficient and efficient.union(listed[_PERFORMANCE_COUNTERS]).issuperset(cpus) else None


def _by_speed(tree: Tree, file: str, cpus: Sequence[int]) -> set[int] | None:
    """Return the slow CPUs; None where the speed of one is unknown."""
    speeds: dict[int, int] = {}
    for cpu in cpus:
        speed = tree.number(f"{CPU_DIRECTORY}/cpu{cpu}/{file}")
        if not speed:
            return None
        speeds[cpu] = speed
    return _below_widest_gap(speeds)


def _below_widest_gap(speeds: Mapping[int, int]) -> set[int]:
    steps = sorted(set(speeds.values()))
    ratio, fast = max(((above / below, above) for below, above in pairwise(steps)), default=(1, 0))
    return {cpu for cpu, speed in speeds.items() if speed < fast} if ratio > _TOLERANCE else set()
