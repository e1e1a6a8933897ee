"""What goes on around a trial while it runs."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from pinstripe.bench.page_faults import PageFaults, read_page_faults
from pinstripe.machine import Counters, Machine, read_counters, read_frequency_mhz
from pinstripe.pool import Pool

__all__ = ["Surroundings", "Watch", "cpu_time_ns", "watching"]

_FREQUENCY_EVERY_S: Final = 0.5
_CLOCK_OF_PROCESS: Final = 2  # CPUCLOCK_SCHED of the kernel: all threads, user and system, in nanoseconds


class Surroundings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What went on around a trial, from the start of its warm-up to the end of its window.

    Attributes:
        elapsed_ns: How long that was.
        counters: What control groups and the hypervisor took away, and how busy the instances' CPUs were.
        own_cpu_ns: CPU time of the workers, and of the parent unless it kept to CPUs that no instance has; None where a
            worker had ended.
        parent_cpu_ns: CPU time of the parent alone.
        clock_mhz: Mean clock frequency of the instances' CPUs, every half second; empty where unknown, or in less time.
        suspended_s: Seconds in which the parent seems to have been suspended.
        minor_faults: Page faults of the workers in the window alone that needed no disk: pages that they got from the
            kernel. None where it does not say.
        major_faults: Those that waited for the disk, likewise.
        window_forwards: Forward passes of the workers meanwhile, those that the window's end cut off included; None
            where `minor_faults` is.
    """

    elapsed_ns: int
    counters: Counters
    own_cpu_ns: int | None
    parent_cpu_ns: int
    clock_mhz: tuple[float, ...]
    suspended_s: float
    minor_faults: int | None = None
    major_faults: int | None = None
    window_forwards: int | None = None


class Watch:
    """Looks at a pool's surroundings, from when it is made; use `watching`."""

    def __init__(self, pool: Pool, machine: Machine) -> None:
        """Begin."""
        self._pool = pool
        self._cpus = tuple(sorted({cpu for one in pool.instances for cpu in one.spec.cpus or machine.allowed}))
        self._parent_is_apart = os.sched_getaffinity(0).isdisjoint(self._cpus)
        self._clock_mhz: list[float] = []
        self._suspended_s = pool.suspended_s
        self._parent_ns = time.process_time_ns()
        self._workers_ns = self._worker_cpu_ns()
        self._at_opening: tuple[PageFaults | None, int] = (None, 0)
        self._counters = read_counters(cpus=self._cpus)
        self._began_ns = time.monotonic_ns()

    async def sample(self) -> None:
        """Note the clock frequency from time to time, until cancelled."""
        while True:
            await asyncio.sleep(_FREQUENCY_EVERY_S)
            if (mhz := read_frequency_mhz(self._cpus)) is None:
                return
            self._clock_mhz.append(mhz)

    def window_opens(self) -> None:
        """Count page faults from here; nothing may be in flight."""
        self._at_opening = (self._page_faults(), self._forwards())

    def surroundings(self) -> Surroundings:
        """Return what was seen until now."""
        faults = self._faults_in_window()
        forwards = self._forwards() - self._at_opening[1]
        elapsed_ns = time.monotonic_ns() - self._began_ns
        counters = read_counters(cpus=self._cpus).since(self._counters)
        before_ns, after_ns = self._workers_ns, self._worker_cpu_ns()
        workers_ns = None if before_ns is None or after_ns is None else after_ns - before_ns
        parent_ns = time.process_time_ns() - self._parent_ns
        return Surroundings(
            elapsed_ns=elapsed_ns,
            counters=counters,
            own_cpu_ns=None if workers_ns is None else workers_ns + (0 if self._parent_is_apart else parent_ns),
            parent_cpu_ns=parent_ns,
            clock_mhz=tuple(self._clock_mhz),
            suspended_s=self._pool.suspended_s - self._suspended_s,
            minor_faults=None if faults is None else faults.minor,
            major_faults=None if faults is None else faults.major,
            window_forwards=None if faults is None else forwards,
        )

    def _faults_in_window(self) -> PageFaults | None:
        before, after = self._at_opening[0], self._page_faults()
        return None if before is None or after is None else after - before

    def _page_faults(self) -> PageFaults | None:
        faults = [read_page_faults(instance.process.pid) for instance in self._pool.instances]
        known = [one for one in faults if one is not None]
        return sum(known, PageFaults(0, 0)) if len(known) == len(faults) else None

    def _forwards(self) -> int:
        return sum(instance.batches_done for instance in self._pool.instances)

    def _worker_cpu_ns(self) -> int | None:
        try:
            return sum(cpu_time_ns(instance.process.pid) for instance in self._pool.instances)
        except OSError:
            return None


@asynccontextmanager
async def watching(pool: Pool, machine: Machine) -> AsyncGenerator[Watch]:
    """Watch a pool's surroundings meanwhile."""
    watch = Watch(pool, machine)
    sampling = asyncio.get_running_loop().create_task(watch.sample())
    try:
        yield watch
    finally:
        sampling.cancel()


def cpu_time_ns(pid: int) -> int:
    """Return the CPU time that a process has used, its ended threads included.

    Linux gives every process a clock whose id is made of the process' (clock_getcpuclockid(3), `MAKE_PROCESS_CPUCLOCK`
    of the kernel); unlike `/proc/PID/stat` it counts nanoseconds.

    Raises:
        OSError: There is no such process.
    """
    return time.clock_gettime_ns((~pid << 3) | _CLOCK_OF_PROCESS)
