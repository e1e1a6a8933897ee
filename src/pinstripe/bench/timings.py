"""Times of several batches."""

from collections.abc import Iterable, Sequence

from pinstripe.pool import BatchTiming
from pinstripe.statistics import percentile_rank_bound

__all__ = ["bound_ms", "first_submitted_ns", "last_done_ns", "occupied_ns", "span_ns"]


def first_submitted_ns(timings: Iterable[BatchTiming]) -> int:
    """Return when the first of at least one batch was handed out."""
    return min(timing.submitted_ns for timing in timings)


def last_done_ns(timings: Iterable[BatchTiming]) -> int:
    """Return when the last of at least one batch was done."""
    return max(timing.done_ns for timing in timings)


def span_ns(timings: Sequence[BatchTiming]) -> int:
    """Return the time from handing out the first of at least one batch to having the last."""
    return last_done_ns(timings) - first_submitted_ns(timings)


def occupied_ns(lane: Sequence[BatchTiming]) -> list[int]:
    """Return how long each batch of an instance occupied it; a batch may have waited behind its predecessor."""
    previous_ns = 0
    durations = []
    for timing in lane:
        durations.append(timing.done_ns - max(timing.submitted_ns, previous_ns))
        previous_ns = timing.done_ns
    return durations


def bound_ms(times_ns: Sequence[float], percent: float) -> float | None:
    """Return what a percentile of times truly does not exceed with 95 % confidence, in milliseconds.

    None if there are too few of them for any bound; see `percentile_rank_bound`.
    """
    rank = percentile_rank_bound(len(times_ns), percent)
    return None if rank is None else sorted(times_ns)[rank - 1] / 1e6
