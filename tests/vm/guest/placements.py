"""In the guest: starts processes on cores and memory nodes, and prints what the kernel says of them."""

import ctypes
import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import msgspec

from pinstripe.errors import PinstripeError
from pinstripe.machine import read_machine
from pinstripe.runtime import StartRequest, read_evidence, start

TOUCH = """
import ctypes, mmap, threading, time
area = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for offset in range(0, len(area), 4096):
    area[offset] = 1
threading.Thread(target=time.sleep, args=(600,)).start()
print(ctypes.addressof(ctypes.c_char.from_buffer(area)), flush=True)
time.sleep(600)
"""
GROUPS = Path("/sys/fs/cgroup")


def placed(**fields: Any) -> dict[str, Any]:
    """Start a process that touches 16 MiB and starts a thread, and tell where all of that is."""
    request = {"argv": (sys.executable, "-c", TOUCH), "output": "keep", **fields}
    try:
        process = start(StartRequest(**request))
    except PinstripeError as error:
        return {"error": type(error).__name__, "message": str(error)}
    while not process.output_tail().endswith("\n"):
        assert process.poll() is None, process.output_tail()
        sleep(0.05)
    address = int(process.output_tail())
    listing = Path(f"/proc/{process.pid}/numa_maps").read_text().splitlines()
    tasks = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
    result = {
        "memory": msgspec.to_builtins(process.memory),
        # The kernel may have joined it to an area below.
        "area": [line for line in listing if int(line.partition(" ")[0], 16) <= address][-1],
        "affinity": [sorted(os.sched_getaffinity(task)) for task in tasks],
        "node_memory": msgspec.to_builtins(read_evidence(process.pid).node_memory),
    }
    process.stop(0)
    return result


def in_child(action: Callable[[], Any]) -> Any:
    """Run `action` in a forked process, so that what it does to itself ends with it."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, json.dumps(action()).encode())
        os._exit(0)
    os.close(writer)
    os.wait()
    with os.fdopen(reader) as answer:
        return json.load(answer)


def join_group(name: str, **limits: str) -> None:
    """Make a control group with these limits, and move this process into it."""
    group = GROUPS / name
    group.mkdir()
    for limit, value in limits.items():
        (group / limit.replace("_", ".")).write_text(value)
    (group / "cgroup.procs").write_text(str(os.getpid()))


def filtered() -> dict[str, Any]:
    """Deny set_mempolicy (238) by a seccomp filter, with EPERM (1), as container engines do."""
    instructions = [(0x20, 0, 0, 0), (0x15, 0, 1, 238), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in instructions))
    program = struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    return {"auto": placed(nodes=(1,)), "bind": placed(nodes=(1,), memory_policy="bind")}


def confined_memory() -> dict[str, Any]:
    """Enter a group that has the memory of node 1 and the CPUs 2-3 and 6."""
    join_group("memory", cpuset_cpus="2-3,6", cpuset_mems="1")
    return {
        "bind_0": placed(nodes=(0,), memory_policy="bind"),
        "interleave_both": placed(nodes=(0, 1), memory_policy="interleave"),
        "auto_both": placed(nodes=(0, 1)),
        "bind_1": placed(nodes=(1,), memory_policy="bind", cpus=(2, 6)),
        "partly_outside": placed(cpus=(1, 2)),
        "outside": placed(cpus=(0, 1)),
    }


def confined_machine() -> Any:
    """Enter a group two levels deep: 3.5 CPUs' worth of time and CPUs 1-6 outside, 1.5 and CPUs 0-3 inside."""
    join_group("outer", cpuset_cpus="1-6", cpu_max="350000 100000")
    (GROUPS / "cgroup.procs").write_text(str(os.getpid()))
    (GROUPS / "outer/cgroup.subtree_control").write_text("+cpuset +cpu")
    join_group("outer/inner", cpuset_cpus="0-3", cpuset_mems="0", cpu_max="150000 100000")
    return msgspec.to_builtins(read_machine())


def two_nodes() -> dict[str, Any]:
    """All that is tried on a guest with 2 nodes of 2 cores with 2 threads."""
    return {
        "machine": msgspec.to_builtins(read_machine()),
        "bind": placed(cpus=(2, 6), nodes=(1,), memory_policy="bind"),
        "bind_far": placed(cpus=(0,), nodes=(1,), memory_policy="bind"),
        "preferred_far": placed(cpus=(0, 4), nodes=(1,), memory_policy="preferred"),
        "preferred_both": placed(nodes=(0, 1), memory_policy="preferred"),
        "interleave": placed(nodes=(0, 1), memory_policy="interleave"),
        "local": placed(cpus=(3,), memory_policy="local"),
        "none": placed(cpus=(7,), memory_policy="none"),
        "auto_one": placed(cpus=(1, 5), nodes=(0,)),
        "auto_both": placed(cpus=(0, 2), nodes=(0, 1)),
        "absent": placed(nodes=(5,), memory_policy="bind"),
        "filtered": in_child(filtered),
        "confined_memory": in_child(confined_memory),
        "confined_machine": in_child(confined_machine),
    }


def memoryless_node() -> dict[str, Any]:
    """All that is tried on a guest whose node 2 has CPUs and no memory."""
    machine = read_machine()
    cpus = machine.nodes[2].cpus
    return {
        "machine": msgspec.to_builtins(machine),
        "bind": placed(cpus=cpus, nodes=(2,), memory_policy="bind"),
        "auto": placed(cpus=cpus, nodes=(2,)),
        "near": placed(cpus=cpus, nodes=(1,), memory_policy="bind"),
    }


def main() -> None:
    """Print one JSON object."""
    Path("/proc/sys/kernel/numa_balancing").write_text("0")  # or the kernel may move pages between touch and look
    results = {"two-nodes": two_nodes, "memoryless-node": memoryless_node}[sys.argv[1]]()
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
