"""Processes that touch memory, and where the kernel says that they and it are."""

import os
import sys
from pathlib import Path
from time import sleep
from typing import Any

import msgspec

from pinstripe.errors import PinstripeError
from pinstripe.runtime import StartRequest, read_evidence, start

from .progress import tell

__all__ = ["memory_areas", "placed", "thread_cpus"]

_TOUCH = """
import ctypes, mmap, threading, time
area = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for offset in range(0, len(area), 4096):
    area[offset] = 1
threading.Thread(target=time.sleep, args=(600,)).start()
print(ctypes.addressof(ctypes.c_char.from_buffer(area)), flush=True)
time.sleep(600)
"""


def placed(**fields: Any) -> dict[str, Any]:
    """Start a process that touches 16 MiB and starts a thread, and tell where all of that is."""
    tell(f"a process: {fields}")
    request = {"argv": (sys.executable, "-c", _TOUCH), "output": "keep", **fields}
    try:
        process = start(StartRequest(**request))
    except PinstripeError as error:
        return {"error": type(error).__name__, "message": str(error)}
    while not process.output_tail().endswith("\n"):
        assert process.poll() is None, process.output_tail()
        sleep(0.05)
    address = int(process.output_tail())
    result = {
        "memory": msgspec.to_builtins(process.memory),
        # The kernel may have joined it to an area below.
        "area": [line for line in memory_areas(process.pid) if int(line.partition(" ")[0], 16) <= address][-1],
        "affinity": thread_cpus(process.pid),
        "node_memory": msgspec.to_builtins(read_evidence(process.pid).node_memory),
    }
    process.stop(0)
    return result


def memory_areas(pid: int) -> list[str]:
    """Return a process's areas of memory as the kernel lists them: address, policy, pages on each node."""
    return Path(f"/proc/{pid}/numa_maps").read_text().splitlines()


def thread_cpus(pid: int) -> list[list[int]]:
    """Return the CPUs that each thread of a process may run on, as the kernel answers."""
    return [sorted(os.sched_getaffinity(int(task.name))) for task in Path(f"/proc/{pid}/task").iterdir()]
