"""How long threads that have nothing to do stay awake, before they sleep."""

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

__all__ = ["awake_ms"]

_ROUNDS: Final = 5
_PAUSE_S: Final = 0.0002
_RUNNABLE: Final = "R"


def awake_ms(work: Callable[[], tuple[Collection[int], int]], watched_ms: float) -> float | None:
    """Return how long threads stay awake after work, in milliseconds; None where the kernel shows no states.

    A thread that spins is runnable all the time, whether or not it has a CPU, so other load on the machine does not
    make it look asleep. Load can delay that a thread falls asleep, and that it is noticed: of several rounds the
    shortest counts.

    Args:
        work: Has the threads work; returns their ids, at least one, and when the last was done, on the monotonic clock
            in nanoseconds.
        watched_ms: Until then they are watched, and returned if none of them slept.
    """
    try:
        return min(_round_ms(*work(), watched_ms) for _ in range(_ROUNDS))
    except OSError:
        return None


def _round_ms(tids: Collection[int], done_ns: int, watched_ms: float) -> float:
    """Wait for the first thread that sleeps."""
    begin_ns = time.monotonic_ns()
    while (now_ns := time.monotonic_ns()) - begin_ns < watched_ms * 1e6:
        if any(_state(tid) != _RUNNABLE for tid in tids):
            return min((now_ns - done_ns) / 1e6, watched_ms)
        time.sleep(_PAUSE_S)
    return watched_ms


def _state(tid: int) -> str:
    """Return the state of a thread of this process: field 3 of proc_pid_stat(5), after the name in parentheses."""
    return Path(f"/proc/self/task/{tid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
