"""Who else used our CPUs, and what was taken from them, over some time."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from pinstripe.machine import Counters, read_counters
from pinstripe.machine.tree import Tree

__all__ = ["Activity", "activity_between", "read_load", "watch"]


class Activity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happened on the allowed CPUs while we did nothing.

    Attributes:
        duration_s: How long we looked.
        foreign_cpus: CPUs' worth of time that other processes used; None where unknown.
        steal_cpus: CPUs' worth of time that the hypervisor took away; None where unknown.
    """

    duration_s: float
    foreign_cpus: float | None
    steal_cpus: float | None


def watch(duration_s: float, sleep: Callable[[float], object] = time.sleep) -> Activity:
    """Look at this machine for a while.

    Args:
        duration_s: How long, above 0. The kernel counts ticks of 10 ms as a rule, so half a second tells 2 %.
        sleep: How to wait.

    Raises:
        MachineError: As for `read_counters`.
    """
    earlier, own_ns, began_ns = read_counters(), time.process_time_ns(), time.monotonic_ns()
    sleep(duration_s)
    elapsed_ns, own_ns = time.monotonic_ns() - began_ns, time.process_time_ns() - own_ns
    return activity_between(earlier, read_counters(), elapsed_ns=elapsed_ns, own_ns=own_ns)


def activity_between(earlier: Counters, later: Counters, *, elapsed_ns: int, own_ns: int) -> Activity:
    """Return what happened between two readings of the counters.

    Args:
        earlier: The first reading.
        later: The second.
        elapsed_ns: Time between them, above 0.
        own_ns: CPU time that this process used meanwhile.
    """
    grown = later.since(earlier)
    return Activity(
        duration_s=elapsed_ns / 1e9,
        foreign_cpus=None if grown.busy_ns is None else max(0, grown.busy_ns - own_ns) / elapsed_ns,
        steal_cpus=None if grown.steal_ns is None else grown.steal_ns / elapsed_ns,
    )


def read_load(root: Path = Path("/")) -> float | None:
    """Return the host's load average of the last minute: threads that ran, waited to run, or waited for a disk.

    None where it is unknown.
    """
    word = (Tree(root).text("proc/loadavg") or "").partition(" ")[0]
    return float(word) if word.replace(".", "", 1).isdecimal() and word.isascii() else None
