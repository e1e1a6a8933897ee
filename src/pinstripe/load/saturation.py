"""Whether a server fell behind."""

from collections.abc import Sequence
from statistics import median
from typing import Final

__all__ = ["LEAST_REQUESTS", "falls_behind"]

LEAST_REQUESTS: Final = 1_000
"""Below it, what begins with an empty queue looks like one that grows: at 0.9 of the capacity of M/D/1 every eleventh
run of 500 requests, every fiftieth of 1,000, and one in three hundred of 2,000 (simulated)."""
_GROWTH: Final = 1.5


def falls_behind(latencies_ns: Sequence[float]) -> bool | None:
    """Return whether a queue grew through a run: the requests arrive faster than they are answered.

    In the last quarter of the requests, the median latency and the lowest one are both more than 1.5 times those of
    the first quarter. The lowest one tells a queue that never empties from bursts and stalls that are worked off; the
    median tells it from a server whose batches take longer under load, but not ever longer. At 1.05 of the capacity of
    M/D/1, 96 of 100 runs of 2,000 requests are told so, in `tests/load/test_saturation.py`.

    Args:
        latencies_ns: Of the answered requests of an open loop, in the order of their scheduled times.

    Returns:
        None for fewer than 1,000, which do not tell.
    """
    if len(latencies_ns) < LEAST_REQUESTS:
        return None
    quarter = len(latencies_ns) // 4
    first, last = latencies_ns[:quarter], latencies_ns[-quarter:]
    return median(last) > _GROWTH * median(first) and min(last) > _GROWTH * min(first)
