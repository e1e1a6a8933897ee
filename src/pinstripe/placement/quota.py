"""How many threads may run at once?"""

import math

from pinstripe.errors import PlacementError
from pinstripe.machine import Machine
from pinstripe.placement.layout import Layout, count_threads
from pinstripe.placement.words import counted

__all__ = ["check_threads", "describe_quota", "thread_limit"]


def thread_limit(machine: Machine) -> float:
    """Return the CPU quota rounded down, at least 1; infinity without a quota.

    One thread more than the quota grants gets all of them throttled, because they wait for each other.
    """
    return math.inf if machine.cpu_quota is None else max(1, math.floor(machine.cpu_quota))


def describe_quota(machine: Machine) -> str:
    """Put the quota in words."""
    return f"the CPU quota of {machine.cpu_quota:g} lets {counted(thread_limit(machine), 'thread')} run at once"


def check_threads(machine: Machine, layout: Layout) -> None:
    """Check that explicitly bound instances keep to the quota.

    Raises:
        PlacementError: They have more threads.
    """
    threads = count_threads(layout)
    if threads > thread_limit(machine):
        raise PlacementError(
            f"--bind names {threads} CPUs, but {describe_quota(machine)}; name at most {thread_limit(machine)}, "
            "or raise the quota"
        )
