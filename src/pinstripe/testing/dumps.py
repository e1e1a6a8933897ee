"""Copies of real machines' `/proc` and `/sys`, such as `hwloc-gather-topology` packs."""

import re
import tarfile
from pathlib import Path
from typing import Final

__all__ = ["unpack_dump"]

# One file in five: what `pinstripe.machine` asks for, under all the names it knows. It is much faster to unpack.
_WANTED: Final = re.compile(
    r"/proc/(?!device-tree/)|cgroup|cpuset|/transparent_hugepage/|/sys/devices/cpu_\w+/cpus$"
    r"|/system/node/(?!node\d+/(memory\d|hugepages|cpu\d))"
    r"|/system/cpu/(\w+|smt/\w+)$"
    r"|/system/cpu/cpu\d+/(online|cpu_capacity|acpi_cppc/highest_perf|cpufreq/base_frequency)$"
    r"|/cpufreq/(policy\d+/)?(boost|\w+_cpus|scaling_(driver|governor|max_freq)|cpuinfo_max_freq|energy_\w+_preference)$"
    r"|/intel_pstate/no_turbo$"
    r"|/system/cpu/cpu\d+/(topology/(core|package|thread)_\w+|cache/index\d+/(level|shared_\w+))$"
)


def unpack_dump(archive: Path, directory: Path) -> None:
    """Unpack the files that `read_machine` and its neighbours (`read_power`, ...) read.

    Links become empty directories: some lead to this machine's own files, and of the others only the names count.

    Args:
        archive: A tar file, compressed or not.
        directory: Where to unpack to; it may be absent.
    """
    with tarfile.open(archive) as tar:
        for member in tar:
            if _WANTED.search(member.name) is None or ".." in member.name:
                continue
            path = directory / member.name.lstrip("/")
            content = tar.extractfile(member) if member.isfile() else None
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
