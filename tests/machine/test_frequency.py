"""Clock frequencies, from either place where the kernel has them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pinstripe.machine import read_frequency_mhz

Grow = Callable[[Mapping[str, str]], Path]
CURRENT = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
CPUINFO = "processor\t: 0\nmodel name\t: X\ncpu MHz\t\t: 1200.500\n\nprocessor\t: 1\ncpu MHz\t\t: 1400.500\n\n"


def test_mean_of_the_cpus_asked_for(grow: Grow) -> None:
    """The governor's file counts kHz; other CPUs do not matter."""
    root = grow({CURRENT.format(cpu): f"{cpu + 1}000000\n" for cpu in range(4)})

    assert read_frequency_mhz((1, 2), root) == 2500
    assert read_frequency_mhz((3,), root) == 4000


def test_cpuinfo_where_there_is_no_governor(grow: Grow) -> None:
    """A virtual machine has MHz in `/proc/cpuinfo` only."""
    root = grow({"proc/cpuinfo": CPUINFO})

    assert read_frequency_mhz((0, 1), root) == 1300.5
    assert read_frequency_mhz((1,), root) == 1400.5


@pytest.mark.parametrize("cpus", [(), (0, 2), (7,)])
def test_unknown(grow: Grow, cpus: tuple[int, ...]) -> None:
    """A mean over some of the CPUs would be no answer for all."""
    assert read_frequency_mhz(cpus, grow({"proc/cpuinfo": CPUINFO})) is None


def test_damaged_files_are_unknown(grow: Grow) -> None:
    """A governor that says 0 or nonsense, and Arm's cpuinfo without MHz, do not end a measurement."""
    files = {
        CURRENT.format(0): "0\n",
        CURRENT.format(1): "<unknown>\n",
        "proc/cpuinfo": "processor\t: 0\n\nBogoMIPS\t: 1\n",
    }

    assert read_frequency_mhz((0, 1), grow(files)) is None


def test_real_machines(dumps: dict[str, tuple[Path, dict[str, Any]]]) -> None:
    """A hybrid laptop, whose CPUs run at different speeds, and an old server that had slowed down."""
    laptop, _ = dumps["hwloc-20em64t-hybrid-1p6c2t+2ca4co1t"]
    server, _ = dumps["lscpu-x86_64-64cpu"]

    assert read_frequency_mhz((0, 1), laptop) == pytest.approx((1203.514 + 400) / 2)
    assert read_frequency_mhz((0, 1), server) == 1064
