"""What disturbed a trial, as far as the machine says."""

from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from pinstripe.bench.record import Record
from pinstripe.bench.watch import Surroundings

__all__ = ["Disturbance", "Disturbances", "disturbances"]

Disturbance = Literal["throttling", "steal", "foreign-cpu", "clock", "suspension"]

_STEAL: Final = 0.01
"""Share of the CPU time above which the hypervisor disturbs: on a host that is not overcommitted it takes nearly none,
and one instance that waits holds the whole batch up."""
_FOREIGN: Final = 0.05
"""Share of the instances' CPU time above which other processes disturb: it costs as much as the differences that
comparisons are to find. A quiet system needs below a hundredth."""
_CLOCK: Final = 0.05
"""Change of the clock frequency that disturbs: rates follow it nearly in proportion."""
_TICK_NS: Final = 10_000_000
"""The kernel counts busy time in ticks, so that its count may be ahead by one a CPU."""


class Disturbances(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Disturbances of a trial, each the worst of its repeats; None where the system does not say.

    Attributes:
        seen: Those beyond what a quiet machine has.
        throttled_fraction: Share of the quota periods in which a control group held the process back; 0 without quota.
        steal_fraction: Share of the instances' CPU time that the hypervisor gave to others; above 0.01 it is `seen`.
        foreign_cpu_fraction: Share of the instances' CPU time that other processes used; above 0.05 it is `seen`.
        clock_change_fraction: How far the lowest clock frequency was below the highest; above 0.05 it is `seen`.
        suspended_s: Seconds in which the parent seems to have been suspended, over all repeats.
    """

    seen: tuple[Disturbance, ...]
    throttled_fraction: float | None
    steal_fraction: float | None
    foreign_cpu_fraction: float | None
    clock_change_fraction: float | None
    suspended_s: float


def disturbances(records: Sequence[Record]) -> Disturbances:
    """Return what disturbed the repeats of a trial."""
    throttled = _worst(records, _throttled)
    steal = _worst(records, _stolen)
    foreign = _worst(records, _foreign)
    clock = _worst(records, _clock_change)
    suspended_s = sum(record.surroundings.suspended_s for record in records if record.surroundings)
    seen: dict[Disturbance, bool] = {
        "throttling": bool(throttled),
        "steal": (steal or 0) > _STEAL,
        "foreign-cpu": (foreign or 0) > _FOREIGN,
        "clock": (clock or 0) > _CLOCK,
        "suspension": suspended_s > 0,
    }
    return Disturbances(
        seen=tuple(name for name, is_seen in seen.items() if is_seen),
        throttled_fraction=throttled,
        steal_fraction=steal,
        foreign_cpu_fraction=foreign,
        clock_change_fraction=clock,
        suspended_s=suspended_s,
    )


def _worst(records: Sequence[Record], share: Callable[[Record, Surroundings], float | None]) -> float | None:
    shares = [share(record, record.surroundings) for record in records if record.surroundings]
    return max((one for one in shares if one is not None), default=None)


def _throttled(_: Record, seen: Surroundings) -> float | None:
    periods, throttled = seen.counters.nr_periods, seen.counters.nr_throttled
    if periods is None or throttled is None:
        return None
    # A period may begin before the watch and end in it, so that more are throttled than began.
    return min(1.0, throttled / max(1, periods))


def _stolen(record: Record, seen: Surroundings) -> float | None:
    if seen.counters.steal_ns is None:
        return None
    return seen.counters.steal_ns / (seen.elapsed_ns * _cpus(record))


def _foreign(record: Record, seen: Surroundings) -> float | None:
    if seen.counters.busy_ns is None or seen.own_cpu_ns is None:
        return None
    foreign_ns = seen.counters.busy_ns - seen.own_cpu_ns - _TICK_NS * _cpus(record)
    return max(0, foreign_ns) / (seen.elapsed_ns * _cpus(record))


def _cpus(record: Record) -> int:
    """Return how many CPUs the instances have together."""
    if record.placement is None:
        return len(record.machine.allowed)
    return sum(len(instance.cpus) for instance in record.placement.instances)


def _clock_change(_: Record, seen: Surroundings) -> float | None:
    return 1 - min(seen.clock_mhz) / max(seen.clock_mhz) if seen.clock_mhz else None
