"""How clocks are governed."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pinstripe.machine import Power, read_power

Grow = Callable[[Mapping[str, str]], Path]
Dumps = dict[str, tuple[Path, dict[str, Any]]]

CPU = "sys/devices/system/cpu"


def policy(directory: str, **values: str) -> dict[str, str]:
    """Return the files of a policy."""
    return {f"{CPU}/{directory}/{name}": f"{value}\n" for name, value in values.items()}


def test_none(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Without frequency scaling nothing is known."""
    assert read_power(grow(four_cpus)) == Power()


def test_policies_of_allowed_cpus(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Only policies that govern a CPU of ours count, and the lowest cap of them."""
    files = four_cpus | {"proc/self/status": "Cpus_allowed_list:\t1\n", f"{CPU}/intel_pstate/no_turbo": "1\n"}
    common = {"scaling_driver": "intel_pstate", "cpuinfo_max_freq": "4000000"}
    files |= policy(
        "cpufreq/policy0", affected_cpus="0 1", scaling_governor="powersave", scaling_max_freq="3000000", **common
    )
    files |= policy(
        "cpufreq/policy2", affected_cpus="2 3", scaling_governor="performance", scaling_max_freq="1000000", **common
    )
    power = read_power(grow(files))
    assert power == Power(drivers=("intel_pstate",), governors=("powersave",), boost=False, cap=0.75, capped=(1,))


def test_old_kernel(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Before policies had a directory of their own, each CPU had one; governors may differ."""
    files = four_cpus | {f"{CPU}/cpufreq/boost": "1\n"}
    files |= policy("cpu0/cpufreq", scaling_driver="acpi-cpufreq", scaling_governor="ondemand")
    files |= policy("cpu1/cpufreq", scaling_driver="acpi-cpufreq", scaling_governor="performance")
    power = read_power(grow(files))
    assert power == Power(drivers=("acpi-cpufreq",), governors=("ondemand", "performance"), boost=True)


@pytest.mark.parametrize("nonsense", ["", "nonsense\n", "-1\n", "0\n"])
def test_malformed(grow: Grow, four_cpus: dict[str, str], nonsense: str) -> None:
    """Frequencies that are none are unknown."""
    files = four_cpus | policy("cpufreq/policy0", affected_cpus="0-x", scaling_max_freq=nonsense, cpuinfo_max_freq="0")
    assert read_power(grow(files)).cap is None


@pytest.mark.parametrize(
    ("name", "driver", "governor"),
    [
        # A laptop of 2023 and servers of 2010, as their own files say.
        ("hwloc-20em64t-hybrid-1p6c2t+2ca4co1t", "intel_pstate", "powersave"),
        ("hwloc-48amd64-4pa2n6c-sparse", "powernow-k8", "performance"),
        ("lscpu-x86_64-64cpu", "acpi-cpufreq", "ondemand"),
    ],
)
def test_dumps(dumps: Dumps, name: str, driver: str, governor: str) -> None:
    """Real machines' drivers and governors are found, in new and old layouts."""
    power = read_power(dumps[name][0])
    assert (power.drivers, power.governors) == ((driver,), (governor,))


def test_clusters_capped_differently(grow: Grow, four_cpus: dict[str, str]) -> None:
    """The share of each policy is of its own highest; the CPUs of the lowest are those that are capped."""
    files = dict(four_cpus)
    for cpus, limit, highest in (("0 1", 1_017_600, 2_016_000), ("2", 1_056_000, 2_803_200), ("3", 998_400, 3_187_200)):
        frequencies = {"scaling_max_freq": str(limit), "cpuinfo_max_freq": str(highest)}
        files |= policy(f"cpufreq/policy{cpus[0]}", affected_cpus=cpus, **frequencies)
    power = read_power(grow(files))
    assert power.cap == pytest.approx(0.3133, abs=1e-4)
    assert power.capped == (3,)
