"""The peak of some cores, measured in processes of its own."""

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact, LoadRequest
from pinstripe.machine import read_machine
from pinstripe.peak import Peak, PeakPrecision, ProbePlace, machine_place, measure_peak, probe_places
from pinstripe.peak import measuring as module
from pinstripe.peak.process import _request
from pinstripe.placement import InstancePlacement, Placement
from pinstripe.pool import Setup, WorkerSpec
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.machines import c5_metal

CPUS = sorted(os.sched_getaffinity(0))


def _measure(*places: ProbePlace, precision: PeakPrecision = "float32", answer_limit_s: float = 60.0) -> Peak:
    return asyncio.run(measure_peak(places, precision, read_machine().isa, answer_limit_s=answer_limit_s))


def _one_cpu(cpu: int) -> ProbePlace:
    return ProbePlace(cpus=(cpu,), threads=1)


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    """See that a test leaves no process of its own behind."""
    before = _children()
    yield
    assert _children() <= before


def _children() -> set[str]:
    tasks = Path("/proc/self/task").iterdir()
    return {child for task in tasks for child in (task / "children").read_text().split()}


@pytest.fixture
def numpy_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the probes that import a framework out."""
    monkeypatch.setitem(module._PROBES, "float32", ("numpy",))


@pytest.mark.usefixtures("numpy_only")
def test_rates_of_all_places_are_added_up() -> None:
    """Two processes at the same time; the peak is the best sum, in a range that a CPU can have.

    No CPU has more than two units of 16 float32 lanes, each a multiplication and an addition a cycle, at 8 GHz: 512
    GFLOP/s. None that this runs on has less than a hundredth of one.
    """
    places = [_one_cpu(cpu) for cpu in CPUS[:2]]
    peak = _measure(*places)
    (probe,) = peak.probes

    assert probe.reason is None
    assert all(len(rate.gflops) == len(places) for rate in probe.rates)
    assert peak.gflops is not None
    assert peak.gflops == max(sum(rate.gflops) for rate in probe.rates)
    assert 0.01 * len(places) < peak.gflops < 512 * len(places)
    assert [2 * rate.m * rate.n * rate.k for rate in probe.rates] == sorted(
        2 * rate.m * rate.n * rate.k for rate in probe.rates
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "probes"),
    [("float32", ("torch-linear", "torch-onednn", "openvino", "numpy")), ("int8", ("torch-onednn", "openvino"))],
)
def test_every_library_that_is_there_has_its_say(precision: PeakPrecision, probes: tuple[str, ...]) -> None:
    """All probes for a precision run, and none that is installed fails."""
    for library in ("torch", "openvino"):
        pytest.importorskip(library)
    peak = _measure(_one_cpu(CPUS[0]), precision=precision)

    assert {probe.probe: probe.reason for probe in peak.probes} == dict.fromkeys(probes)


def test_bfloat16_that_would_be_emulated_is_null_with_the_reason() -> None:
    """Nothing is made up for a processor without the instructions."""
    bfloat16 = asyncio.run(measure_peak([_one_cpu(CPUS[0])], "bfloat16", ("avx2", "fma")))

    assert bfloat16.gflops is None
    assert "no instructions for bfloat16" in str(bfloat16.reason)


def test_failure_of_a_probe_is_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that cannot run is reported with its reason; the others still count, and no process is left."""
    monkeypatch.setitem(module._PROBES, "float32", ("nonsense", "numpy"))
    peak = _measure(_one_cpu(CPUS[0]))

    assert peak.gflops is not None
    assert [probe.reason for probe in peak.probes] == ["'nonsense'", None]


@pytest.mark.usefixtures("numpy_only")
@pytest.mark.parametrize(
    ("place", "limit_s", "says"),
    [
        (ProbePlace(cpus=(4000,), threads=1), 60.0, "numpy: cannot run .* on CPUs 4000"),
        (ProbePlace(cpus=(CPUS[0],), threads=1), 0.001, "numpy: no answer within 0.001 s"),
    ],
    ids=["no such CPU", "too slow"],
)
def test_no_probe_at_all_is_null_with_all_reasons(place: ProbePlace, limit_s: float, says: str) -> None:
    """Where every probe fails there is no peak, and it says why."""
    peak = _measure(place, answer_limit_s=limit_s)

    assert peak.gflops is None
    assert peak.reason is not None
    assert re.search(says, peak.reason)


def test_libraries_choose_their_own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that holds OpenBLAS or oneDNN to older instructions, as some images set, is not passed on."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    environment = _request("numpy", "float32", ProbePlace(cpus=(0,), threads=3), 5).environment

    assert environment["OPENBLAS_CORETYPE"] is None
    assert environment["ONEDNN_MAX_CPU_ISA"] is None
    assert environment["OPENBLAS_NUM_THREADS"] == "3"


def _setup(*cpus: tuple[int, ...] | None) -> Setup:
    artefact = Artefact(format="none", path="", origin="model")
    specs = tuple(
        WorkerSpec(
            engine="fake",
            load=LoadRequest(network=fake_network(), artefact=artefact, threads=None if one is None else len(one)),
            cpus=one,
            nodes=() if one is None else (0,),
        )
        for one in cpus
    )
    pinned = tuple(InstancePlacement(cpus=one, nodes=(0,)) for one in cpus if one is not None)
    placement = Placement(instances=pinned, idle=(), reserved=(), warnings=()) if pinned else None
    return Setup(Configuration(engine="fake"), placement, artefact, specs)


def test_probes_run_where_the_instances_do() -> None:
    """Each instance's CPUs, threads and nodes; an unpinned baseline is one process with all that there is."""
    machine = read_machine()
    pinned = probe_places(_setup((0, 1), (2, 3)), machine)

    assert [(place.cpus, place.threads, place.nodes) for place in pinned] == [((0, 1), 2, (0,)), ((2, 3), 2, (0,))]
    assert probe_places(_setup(None, None), machine) == (
        ProbePlace(cpus=machine.allowed, threads=None, memory_policy="none"),
    )


def test_one_process_on_the_whole_machine() -> None:
    """One thread a core on all cores of two sockets, none on siblings."""
    place = machine_place(c5_metal())

    assert place.cpus == tuple(range(48))
    assert place.threads == 48
