"""How much memory there is, and which CPUs are switched off."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pinstripe.machine import Memory, read_memory, read_offline

Grow = Callable[[Mapping[str, str]], Path]
Dumps = dict[str, tuple[Path, dict[str, Any]]]

MIB = 1 << 20
MEMINFO = {"proc/meminfo": "MemTotal:        8388608 kB\nMemFree: 1 kB\nMemAvailable:    4194304 kB\n"}


def test_without_limit(grow: Grow) -> None:
    """Without a limit the host's numbers count; `max` is no limit."""
    files = MEMINFO | {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}
    assert read_memory(grow(files)) == Memory(total_bytes=8192 * MIB, available_bytes=4096 * MIB, limit_bytes=None)


def test_version_2(grow: Grow) -> None:
    """The tightest group on the path counts; page cache that nobody uses can be had."""
    files = MEMINFO | {
        "proc/self/cgroup": "0::/pod/job\n",
        "sys/fs/cgroup/pod/memory.max": f"{2048 * MIB}\n",
        "sys/fs/cgroup/pod/memory.current": f"{1948 * MIB}\n",
        "sys/fs/cgroup/pod/memory.stat": f"anon 1\ninactive_file {300 * MIB}\n",
        "sys/fs/cgroup/pod/job/memory.max": f"{3072 * MIB}\n",
        "sys/fs/cgroup/pod/job/memory.current": f"{100 * MIB}\n",
    }
    memory = read_memory(grow(files))
    assert (memory.available_bytes, memory.limit_bytes) == (400 * MIB, 2048 * MIB)


def test_version_1(grow: Grow) -> None:
    """Version 1 has other names, and a huge number for no limit."""
    group = "sys/fs/cgroup/memory"
    unlimited = {f"{group}/memory.limit_in_bytes": "9223372036854771712\n", f"{group}/memory.usage_in_bytes": "5\n"}
    mounts = {
        "proc/self/cgroup": "3:memory:/\n",
        "proc/self/mounts": f"cgroup /{group} cgroup rw,memory 0 0\n",
    }
    assert read_memory(grow(MEMINFO | mounts | unlimited)).limit_bytes is None
    limited = {
        f"{group}/memory.limit_in_bytes": f"{1024 * MIB}\n",
        f"{group}/memory.usage_in_bytes": f"{1000 * MIB}\n",
        f"{group}/memory.stat": f"inactive_file 1\ntotal_inactive_file {500 * MIB}\n",
    }
    assert read_memory(grow(MEMINFO | mounts | limited)).available_bytes == 524 * MIB


def test_unknown(grow: Grow) -> None:
    """Nothing is known of a root without the files, or with nonsense in them."""
    assert read_memory(grow({"proc/meminfo": "MemTotal: much kB\nMemAvailable: -5 kB\n"})) == Memory()


def test_here() -> None:
    """The running system's memory is what the C library says, and some of it is available."""
    memory = read_memory()
    assert memory.total_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory.available_bytes is not None
    assert 0 < memory.available_bytes < memory.total_bytes


def test_offline(grow: Grow, four_cpus: dict[str, str]) -> None:
    """CPUs that are present and not online are offline; those that could be added later are not."""
    cpu = "sys/devices/system/cpu"
    assert read_offline(grow(four_cpus | {f"{cpu}/present": "0-5\n", f"{cpu}/possible": "0-127\n"})) == (4, 5)


def test_offline_in_a_dump(dumps: Dumps) -> None:
    """The dump's own list of offline CPUs is 0-3,21-23 of those present."""
    assert read_offline(dumps["hwloc-offline-cpu0-node0"][0]) == (0, 1, 2, 3, 21, 22, 23)
    assert read_offline(dumps["lscpu-vmware_fpe"][0]) == ()
