"""Where the threads of this process may run, once libraries have moved them about."""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["BINDING_VARIABLES", "binds_openmp_threads", "rebind_threads"]

BINDING_VARIABLES: Final = ("GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND")
"""Any of these has an OpenMP runtime bind the threads of its teams, the main thread among them."""


def binds_openmp_threads(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether an environment has an OpenMP runtime bind its threads to CPUs of their own."""
    return any(name in environment for name in BINDING_VARIABLES)


def rebind_threads(cpus: Collection[int], team: Collection[int] = ()) -> int:
    """Let the threads of this process run on all of its CPUs again, and on no others; return how many were changed.

    Some libraries bind their helper threads to all CPUs they find at start-up, whatever mask they inherited. And an
    OpenMP runtime that binds its threads binds the main thread too, whose single CPU every thread that it starts later
    inherits, also those that do not compute.

    Args:
        cpus: CPUs of the process.
        team: Ids of threads that an OpenMP runtime has bound: they stay where they are, if that is within `cpus`.
    """
    everywhere = frozenset(cpus)
    changed = 0
    for task in Path("/proc/self/task").iterdir():
        tid = int(task.name)
        # The thread may have ended, or a CPU been taken away, meanwhile; what then strays, the evidence shows.
        with suppress(OSError):
            now = os.sched_getaffinity(tid)
            if now != everywhere and not (tid in team and now <= everywhere):
                os.sched_setaffinity(tid, everywhere)
                changed += 1
    return changed
