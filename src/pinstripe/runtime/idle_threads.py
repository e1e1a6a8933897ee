"""How long threads that have nothing to do stay awake, before they sleep."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

__all__ = ["awake_ms"]

_ROUNDS: Final = 5
_PAUSE_S: Final = 0.0002
_PATIENCE: Final = 5
"""Threads are watched for so many times the CPU time that is waited for: others may have their CPUs meanwhile."""
_RUNNABLE: Final = "R"


def awake_ms(work: Callable[[], tuple[Mapping[int, int], int]], watched_ms: float) -> float | None:
    """Return how long threads stay awake after work, in milliseconds; None where the kernel shows no states.

    What counts is the CPU time until a thread sleeps, as the kernel accounts for it: on a busy machine a thread that is
    about to sleep, or that watches, may wait long for a CPU. Where the kernel does not account, it is the time that has
    passed. A thread that spins is runnable all the time, whether or not it has a CPU, so load does not make it look
    asleep either. Of several rounds the shortest counts.

    Args:
        work: Has the threads work; returns, by their ids, at least one, the CPU time that each had used when it was
            done, and when the last was done, on the monotonic clock; both in nanoseconds.
        watched_ms: CPU time for which they are watched; returned if none of them slept before.
    """
    try:
        return min(_round_ms(*work(), watched_ms) for _ in range(_ROUNDS))
    except OSError:
        return None


def _round_ms(used_ns: Mapping[int, int], done_ns: int, watched_ms: float) -> float:
    """Wait for the first thread that sleeps."""
    until_ns = time.monotonic_ns() + _PATIENCE * watched_ms * 1e6
    while (now_ns := time.monotonic_ns()) < until_ns:
        awake_ns = {}
        for tid, before_ns in used_ns.items():
            asleep = _state(tid) != _RUNNABLE  # read first: what a sleeping thread has used does not grow any more
            cpu_ns = _cpu_ns(tid)
            awake_ns[tid] = now_ns - done_ns if cpu_ns is None else max(cpu_ns - before_ns, 0)
            if asleep:
                return min(awake_ns[tid] / 1e6, watched_ms)
        if min(awake_ns.values()) >= watched_ms * 1e6:
            break
        time.sleep(_PAUSE_S)
    return watched_ms


def _state(tid: int) -> str:
    """Return the state of a thread of this process: field 3 of proc_pid_stat(5), after the name in parentheses."""
    return Path(f"/proc/self/task/{tid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]


def _cpu_ns(tid: int) -> int | None:
    """Return the CPU time of a thread; None where the kernel does not account for it (sched-stats.rst)."""
    try:
        return int(Path(f"/proc/self/task/{tid}/schedstat").read_text().split()[0]) or None  # 0: accounting is off
    except OSError:
        return None
