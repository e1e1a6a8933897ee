"""Each finding about clock, memory, neighbours, software and what was measured."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from pinstripe.diagnosis import Activity, Finding
from pinstripe.diagnosis.activity import activity_between, read_load
from pinstripe.machine import Counters, Memory, Power
from pinstripe.runtime.installed import InstalledLibrary
from pinstripe.testing.machines import uniform

Look = Callable[..., dict[str, Finding]]

GIB = 1 << 30
SITE = "/opt/python/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("driver", "governor", "severity"),
    [
        # Kernel documentation, intel_pstate.rst: in active mode `powersave` lets hardware choose.
        ("intel_pstate", "powersave", "good"),
        ("amd-pstate-epp", "powersave", "good"),
        ("acpi-cpufreq", "powersave", "problem"),
        ("intel_cpufreq", "powersave", "problem"),
        ("cppc_cpufreq", "performance", "good"),
        ("acpi-cpufreq", "schedutil", "good"),
        ("acpi-cpufreq", "ondemand", "note"),
    ],
)
def test_governor(look: Look, driver: str, governor: str, severity: str) -> None:
    """`powersave` is a problem only where the governor, and not the hardware, chooses the clock."""
    assert look(power=Power(drivers=(driver,), governors=(governor,)))["governor"].severity == severity


@pytest.mark.parametrize(
    ("capped", "title", "seen"),
    [
        ((0, 1, 2, 3), "The clock is capped at 31%", "scaling_max_freq below cpuinfo_max_freq"),
        ((3,), "The clock is capped, at worst at 31%", "scaling_max_freq below cpuinfo_max_freq, the most on CPU 3"),
    ],
)
def test_clock_cap_of_some(look: Look, capped: tuple[int, ...], title: str, seen: str) -> None:
    """Where CPUs are capped differently, those that are the worst are named."""
    finding = look(power=Power(cap=0.313, capped=capped))["clock-cap"]
    assert finding.title.startswith(title)
    assert finding.seen == seen


def test_no_scaling(look: Look) -> None:
    """Where the kernel does not scale, as in guests, nothing is said of clocks."""
    assert not {"governor", "boost", "energy-preference", "clock-cap"} & look().keys()


@pytest.mark.parametrize(
    ("preference", "severity"),
    [("balance_performance", None), ("balance_power", "note"), ("power", "warning"), ("performance", None)],
)
def test_energy_preference(look: Look, preference: str, severity: str | None) -> None:
    """Saving power is said."""
    found = look(power=Power(preferences=(preference,))).get("energy-preference")
    assert (found and found.severity) == severity


def test_boost(look: Look) -> None:
    """Turbo off is a warning, on is good."""
    assert look(power=Power(boost=False))["boost"].severity == "warning"
    assert look(power=Power(boost=True))["boost"].severity == "good"


@pytest.mark.parametrize(("cap", "boost", "is_found"), [(1.0, True, False), (0.99, None, False), (0.6, True, True)])
def test_clock_cap(look: Look, cap: float, boost: bool | None, is_found: bool) -> None:  # noqa: FBT001 - a case's value
    """A clock held well below the highest is said."""
    assert ("clock-cap" in look(power=Power(cap=cap, boost=boost))) is is_found


def test_boost_off_is_said_once(look: Look) -> None:
    """A lower highest frequency is how boost is off, not another finding."""
    assert "clock-cap" not in look(power=Power(cap=0.6, boost=False))


@pytest.mark.parametrize(
    ("thp", "severity"), [(None, None), ("always", "good"), ("madvise", "note"), ("never", "note")]
)
def test_huge_pages(look: Look, thp: str | None, severity: str | None) -> None:
    """Huge pages for everybody are good, others a note that measuring decides on."""
    found = look(replace(uniform(), thp=thp)).get("huge-pages")
    assert (found and found.severity) == severity


@pytest.mark.parametrize(
    ("available", "severity"), [(None, None), (8 * GIB, "good"), (GIB + 1, "warning"), (GIB // 2, "problem")]
)
def test_free_memory(look: Look, available: int | None, severity: str | None) -> None:
    """Below 2 GiB a warning, below 1 GiB a problem."""
    found = look(memory=Memory(available_bytes=available)).get("free-memory")
    assert (found and found.severity) == severity


def busy(foreign: float | None, steal: float | None = 0.0) -> Activity:
    """Return a sample of half a second."""
    return Activity(duration_s=0.5, foreign_cpus=foreign, steal_cpus=steal)


@pytest.mark.parametrize(
    ("foreign", "severity"), [(None, None), (0.1, "good"), (0.4, "warning"), (1.0, "problem"), (4.0, "problem")]
)
def test_neighbours(look: Look, foreign: float | None, severity: str | None) -> None:
    """Of 4 CPUs, a tenth used by others warns, a quarter is a problem."""
    found = look(activity=busy(foreign)).get("neighbours")
    assert (found and found.severity) == severity


@pytest.mark.parametrize(("load", "is_found"), [(None, False), (1.0, False), (3.0, True)])
def test_load(look: Look, load: float | None, is_found: bool) -> None:  # noqa: FBT001 - a case's value
    """A load average of 3 on 4 CPUs is said."""
    assert ("load" in look(load=load)) is is_found


@pytest.mark.parametrize(
    ("steal_s", "now", "severity"),
    [(0, 0.0, None), (1, 0.0, "good"), (50, 0.0, "warning"), (300, 0.0, "problem"), (1, 2.0, "problem")],
)
def test_steal(look: Look, steal_s: int, now: float, severity: str | None) -> None:
    """Of 1000 s that were wanted, 50 stolen warn and 300 are a problem; so is half of 4 CPUs now."""
    counters = Counters(
        nr_periods=None,
        nr_throttled=None,
        throttled_ns=None,
        steal_ns=steal_s * 10**9,
        busy_ns=(1000 - steal_s) * 10**9,
    )
    found = look(counters=counters, activity=busy(0.0, now)).get("steal")
    assert (found and found.severity) == severity


@pytest.mark.parametrize(
    ("idle", "now", "severity"),
    [
        # Ticks of a POWER7 as its own /proc/stat says: 115628 stolen of 293648 that were wanted, 5318194608 idle.
        (5_318_194_608, None, "note"),
        (5_318_194_608, 0.0, "note"),
        (5_318_194_608, 2.0, "problem"),
        # A tenth of the time was wanted.
        (2_642_832, None, "problem"),
        (None, None, "problem"),
    ],
)
def test_steal_of_an_idle_machine(look: Look, idle: int | None, now: float | None, severity: str) -> None:
    """Of the few ticks of an idle machine, those that were stolen say little; what is stolen now, much."""
    tick_ns = 10**7
    counters = Counters(
        nr_periods=None,
        nr_throttled=None,
        throttled_ns=None,
        steal_ns=115_628 * tick_ns,
        busy_ns=178_020 * tick_ns,
    )
    activity = None if now is None else busy(0.0, now)
    found = look(counters=counters, activity=activity, idle_ns=None if idle is None else idle * tick_ns)["steal"]
    assert (found.severity, found.certainty) == (severity, "possible" if severity == "note" else "certain")


def test_activity_leaves_out_ourselves() -> None:
    """Of 3 s that the CPUs were busy in 2 s, we used 1: others used one CPU; 0.5 s were stolen: a quarter."""
    earlier = Counters(nr_periods=None, nr_throttled=None, throttled_ns=None, steal_ns=0, busy_ns=7 * 10**9)
    later = replace(earlier, steal_ns=5 * 10**8, busy_ns=10 * 10**9)
    activity = activity_between(earlier, later, elapsed_ns=2 * 10**9, own_ns=10**9)
    assert activity == Activity(duration_s=2.0, foreign_cpus=1.0, steal_cpus=0.25)


@pytest.mark.parametrize(
    ("content", "load"), [("1.92 1.8 1.7 3/200 4\n", 1.92), ("", None), ("nan 1 1\n", None), ("x\n", None)]
)
def test_load_average(tmp_path: Path, content: str, load: float | None) -> None:
    """The first number is the last minute's."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/loadavg").write_text(content)
    assert read_load(tmp_path) == load


def libraries(**paths: str) -> tuple[InstalledLibrary, ...]:
    """Return libraries by name and path."""
    return tuple(InstalledLibrary(name=name.partition("_")[0], path=path) for name, path in paths.items())  # type: ignore[arg-type]


def test_openmp_runtimes(look: Look) -> None:
    """Two packages with a runtime each are noted, and libomp beside libiomp5; the system's own copy is not."""
    one = libraries(gomp_1=f"{SITE}/torch/lib/libgomp.so.1", gomp_2="/usr/lib/libgomp.so.1.0.0")
    assert look(libraries=one)["openmp-runtimes"].severity == "good"
    two = one + libraries(gomp_3=f"{SITE}/scikit_learn.libs/libgomp-e985bcbb.so.1.0.0")
    found = look(libraries=two)["openmp-runtimes"]
    assert (found.severity, found.seen) == ("note", "libgomp of torch, the system, scikit_learn")
    clash = libraries(iomp="/opt/lib/libiomp5.so", omp="/usr/lib/libomp.so.5")
    assert "never load both" in look(libraries=clash)["openmp-runtimes"].title
    assert look(libraries=())["openmp-runtimes"].severity == "good"


def test_engines(look: Look) -> None:
    """No engine is a problem, some are a note that says what to install, all are good."""
    torch, openvino = {"torch": "2.9", "transformers": "5.0"}, {"openvino": "2026.1"}
    assert look(engines={"torch-eager": torch, "openvino": openvino})["engines"].severity == "good"
    some = look(engines={"torch-eager": torch | {"transformers": None}, "openvino": openvino})["engines"]
    assert (some.severity, some.remedy) == ("note", "`pip install transformers`")
    none = look(engines={"torch-eager": {"torch": None, "transformers": None}, "openvino": {"openvino": None}})[
        "engines"
    ]
    assert (none.severity, none.remedy) == ("problem", "`pip install torch transformers openvino`")


@pytest.mark.parametrize(("percent", "severity"), [(None, None), (1.5, "good"), (4.0, "note"), (12.0, "warning")])
def test_noise(look: Look, percent: float | None, severity: str | None) -> None:
    """The noise floor is a finding once it is measured."""
    found = look(noise_percent=percent).get("noise")
    assert (found and found.severity) == severity


def test_peak(look: Look) -> None:
    """Measured peaks are told, those that could not be measured are left out."""
    found = look(peaks={"float32": 180.4, "bfloat16": None})["peak"]
    assert found.title == "The cores give 180 GFLOP/s float32"
    assert "peak" not in look(peaks={"float32": None})
