"""Threads that were moved about are put back, and those that an OpenMP runtime has bound are not."""

import os
from collections.abc import Callable

import pytest

from pinstripe.runtime import Process, binds_openmp_threads, find_libraries

Launch = Callable[..., Process]

_HELPER = """
import os, threading
from pinstripe.runtime import openmp_team, rebind_threads
here = lambda thread: sorted(os.sched_getaffinity(thread.native_id))
def helper():
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    return thread
"""


def _run(launch: Launch, code: str, cpus: tuple[int, ...], **environment: str) -> list[str]:
    process = launch(_HELPER + code, cpus=cpus, environment={"OPENBLAS_NUM_THREADS": "1", **environment})
    assert process.wait(60) == 0, process.output_tail()
    return process.output_tail().splitlines()


@pytest.fixture
def two_cpus() -> tuple[int, int]:
    """Two CPUs that this process may use."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    return cpus[0], cpus[1]


@pytest.mark.parametrize("name", ["gomp", "iomp", "omp"])
def test_the_team_stays_and_its_heirs_are_widened(name: str, two_cpus: tuple[int, int], launch: Launch) -> None:
    """A thread that the bound main thread starts is squeezed onto its CPU, and freed; the team is left as it is."""
    paths = [library.path for library in find_libraries().own if library.name == name]
    if not paths:
        pytest.skip(f"no {name} is installed")
    first, second = two_cpus
    code = (
        f"cpus = [{first}, {second}]; openmp_team(); heir = helper(); print(here(heir))\n"
        "team = openmp_team(); print(rebind_threads(cpus, {t.tid for t in team}) > 0, here(heir))\n"
        "team = openmp_team(); print(sorted(t.cpus for t in team), rebind_threads(cpus, {t.tid for t in team}))\n"
    )
    lines = _run(
        launch,
        code,
        two_cpus,
        LD_PRELOAD=paths[-1],
        OMP_NUM_THREADS="2",
        OMP_PLACES=f"{{{first}}},{{{second}}}",
        OMP_PROC_BIND="close",
    )
    assert lines == [f"[{first}]", f"True [{first}, {second}]", f"[({first},), ({second},)] 0"]


def test_without_a_team_all_are_freed(two_cpus: tuple[int, int], launch: Launch) -> None:
    """Narrowed threads, the main thread too, get all CPUs of the instance, where nobody asked to bind them."""
    first, second = two_cpus
    code = (
        f"os.sched_setaffinity(0, {{{first}}}); heir = helper()\n"
        f"print(rebind_threads([{first}, {second}]), here(heir), sorted(os.sched_getaffinity(0)))\n"
    )
    assert _run(launch, code, two_cpus) == [f"2 [{first}, {second}] [{first}, {second}]"]


def test_strays_are_put_back(two_cpus: tuple[int, int], launch: Launch) -> None:
    """A thread outside the instance's CPUs comes back, even one of the team: these are not its CPUs."""
    first, second = two_cpus
    code = (
        f"stray = helper(); os.sched_setaffinity(stray.native_id, {{{first}, {second}}})\n"
        f"print(rebind_threads([{first}], {{stray.native_id}}), here(stray))\n"
        f"print(rebind_threads([{first}]))\n"
    )
    assert _run(launch, code, (first,)) == [f"1 [{first}]", "0"]


def test_what_binds() -> None:
    """The variables that the knob sets, each of them, and none other."""
    assert binds_openmp_threads({"KMP_AFFINITY": "compact"})
    assert binds_openmp_threads({"OMP_PLACES": "cores"})
    assert not binds_openmp_threads({"OMP_NUM_THREADS": "2", "KMP_BLOCKTIME": "0"})
