"""How fast CPUs run at this moment."""

import re
from collections.abc import Collection
from pathlib import Path
from statistics import fmean
from typing import Final

from pinstripe.machine.limits import CPU_DIRECTORY
from pinstripe.machine.tree import Tree

__all__ = ["read_frequency_mhz"]

_KHZ_A_MHZ: Final = 1000


def read_frequency_mhz(cpus: Collection[int], root: Path = Path("/")) -> float | None:
    """Return the mean clock frequency of some CPUs in MHz, as far as the kernel knows it.

    From each CPU's `cpufreq/scaling_cur_freq` (kHz; measured over the last ticks where the processor can, else what the
    governor asked for), or from `cpu MHz` in `/proc/cpuinfo`, which in a virtual machine is a constant.

    Args:
        cpus: Their numbers.
        root: As for `read_machine`.

    Returns:
        None where it is unknown for one of them, and without CPUs.
    """
    tree = Tree(root)
    scaled = [tree.number(f"{CPU_DIRECTORY}/cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in cpus]
    known = [value / _KHZ_A_MHZ for value in scaled if value]
    if len(known) < len(scaled):
        listed = _listed_mhz(tree.text("proc/cpuinfo") or "")
        known = [listed[cpu] for cpu in cpus if listed.get(cpu)]
    return fmean(known) if known and len(known) == len(scaled) else None


def _listed_mhz(content: str) -> dict[int, float]:
    """Return the frequencies of `/proc/cpuinfo` by CPU; blocks are separated by blank lines."""
    found = {}
    for block in re.split(r"\n\s*\n", content):
        number = re.search(r"^processor[ \t]*:[ \t]*(\d+)", block, re.MULTILINE)
        mhz = re.search(r"^cpu MHz[ \t]*:[ \t]*(\d+\.?\d*)", block, re.MULTILINE)
        if number and mhz:
            found[int(number[1])] = float(mhz[1])
    return found
