"""Asking a process which OpenMP runtime serves it, in processes that were started so or otherwise."""

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pinstripe.runtime import OpenmpObservation, Process, find_libraries, idle_threads
from pinstripe.runtime.idle_threads import awake_ms

Launch = Callable[..., Process]

_SAY = """
import os, sys, msgspec
from pinstripe.runtime.openmp_probe import observe_openmp
print(msgspec.json.encode([observe_openmp(), os.getpid(), sorted(map(int, os.listdir("/proc/self/task")))]).decode())
"""
_CLEAN: dict[str, str | None] = dict.fromkeys(
    ("GOMP_SPINCOUNT", "KMP_AFFINITY", "KMP_BLOCKTIME", "OMP_PLACES", "OMP_PROC_BIND", "OMP_WAIT_POLICY", "LD_PRELOAD")
)


def _library(name: str) -> str:
    found = [library.path for library in find_libraries().own if library.name == name]
    if not found:
        pytest.skip(f"no {name} is installed")
    return found[-1]


def _two_cpus() -> tuple[int, int]:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    return cpus[0], cpus[1]


def _said(process: Process) -> tuple[OpenmpObservation | None, int, list[int]]:
    status, text = process.wait(60), process.output_tail()
    assert status == 0, text
    return msgspec.json.decode(text.splitlines()[-1], type=tuple[OpenmpObservation | None, int, list[int]])


def _observed(launch: Launch, code: str = _SAY, **environment: str | None) -> OpenmpObservation:
    process = launch(code, environment={**_CLEAN, "OMP_NUM_THREADS": "2", **environment})
    observation, _, _ = _said(process)
    assert observation is not None
    return observation


@pytest.mark.parametrize("name", ["gomp", "iomp", "omp"])
def test_a_preloaded_runtime_and_its_team(name: str, launch: Launch) -> None:
    """It is named by its file; its team is the calling thread and those that the kernel lists besides."""
    path = _library(name)
    cpus = _two_cpus()
    environment = {**_CLEAN, "OMP_NUM_THREADS": "3", "LD_PRELOAD": path}
    observation, pid, tids = _said(launch(_SAY, cpus=cpus, environment=environment))
    assert observation is not None
    assert (observation.name, observation.path) == (name, path)
    team = [thread.tid for thread in observation.team]
    assert len(team) == 3
    assert pid in team
    assert set(team) <= set(tids)
    assert {thread.cpus for thread in observation.team} == {cpus}


@pytest.mark.parametrize("name", ["gomp", "iomp", "omp"])
def test_bound_threads(name: str, launch: Launch) -> None:
    """Threads that the runtime was told to bind say one CPU each, as it prints itself."""
    first, second = _two_cpus()
    variables = (
        {"OMP_PLACES": f"{{{second}}},{{{first}}}", "OMP_PROC_BIND": "close"}
        if name == "gomp"
        else {"KMP_AFFINITY": f"granularity=fine,explicit,proclist=[{second},{first}]"}
    )
    process = launch(
        _SAY,
        environment=_CLEAN
        | {"OMP_NUM_THREADS": "2", "LD_PRELOAD": _library(name), "OMP_DISPLAY_AFFINITY": "true"}
        | {"OMP_AFFINITY_FORMAT": "bound %i %A"}
        | variables,
    )
    observation, pid, _ = _said(process)
    assert observation is not None
    masks = {thread.tid == pid: thread.cpus for thread in observation.team}
    assert masks == {True: (second,), False: (first,)}
    said = {line.split()[2] for line in process.output_tail().splitlines() if line.startswith("bound ")}
    assert said == {str(first), str(second)}


def test_none_is_loaded(launch: Launch) -> None:
    """A process without OpenMP has nothing to say, and gets no threads by being asked."""
    observation, pid, tids = _said(launch("import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'" + _SAY))
    assert (observation, tids) == (None, [pid])


@pytest.mark.parametrize(("mode", "found"), [("RTLD_LOCAL", False), ("RTLD_GLOBAL", True)])
def test_loading_late_is_not_serving(mode: str, found: bool, launch: Launch) -> None:  # noqa: FBT001 - a parameter
    """A runtime that is mapped serves nobody unless names are looked up in it."""
    path = _library("gomp")
    code = f"import ctypes; ctypes.CDLL({path!r}, mode=ctypes.{mode})" + _SAY
    observation, _, _ = _said(launch(code, environment=_CLEAN))
    assert (observation is not None) == found


def test_a_stranger_serves(launch: Launch, tmp_path: Path) -> None:
    """A runtime by a name that is none of the three's is an error, not taken for one of them."""
    path = tmp_path / "libparallel.so"
    shutil.copy(_library("gomp"), path)
    process = launch(_SAY, environment=_CLEAN | {"LD_PRELOAD": str(path)})
    assert process.wait(60) == 1
    assert f"ExecutionError: {path} serves OpenMP, but is neither GNU's" in process.output_tail()


@pytest.mark.parametrize("name", ["gomp", "iomp"])
def test_torch_is_served_by_it(name: str, launch: Launch) -> None:
    """Torch's own thread count moves the runtime that is named, and no other, as threadpoolctl counts them."""
    pytest.importorskip("torch")
    pytest.importorskip("threadpoolctl")
    preload = _library(name) if name == "iomp" else None
    code = (
        "import json, threadpoolctl, torch; torch.set_num_threads(2); torch.ones(300, 300) @ torch.ones(300, 300)"
        + _SAY
        + "print(json.dumps({i['filepath']: i['num_threads'] for i in threadpoolctl.threadpool_info()"
        " if i['user_api'] == 'openmp'}), file=sys.stderr)"
    )
    process = launch(code, environment=_CLEAN | {"OMP_NUM_THREADS": "1", "LD_PRELOAD": preload})
    assert process.wait(100) == 0, process.output_tail()
    first, second = sorted(process.output_tail().splitlines()[-2:])
    observation, _, _ = msgspec.json.decode(first, type=tuple[OpenmpObservation, int, list[int]])
    pools = msgspec.json.decode(second, type=dict[str, int])
    assert observation.name == name
    assert len(observation.team) == 2
    assert [path for path, threads in pools.items() if threads == 2] == [observation.path]


@pytest.mark.parametrize("name", ["iomp", "omp"])
@pytest.mark.parametrize(("asked", "said"), [("7", 7), ("0", 0), ("infinite", 2147483647), (None, 200)])
def test_blocktime_is_read_back(name: str, asked: str | None, said: int, launch: Launch) -> None:
    """What Intel's and LLVM's runtimes say; 200 ms is their documented default."""
    observation = _observed(launch, LD_PRELOAD=_library(name), KMP_BLOCKTIME=asked)
    assert (observation.blocktime_ms, observation.awake_ms) == (said, None)


def test_gnus_threads_are_watched(launch: Launch) -> None:
    """Idle threads are seen to sleep at once, to spin on, or something between; one thread alone cannot be."""
    path = _library("gomp")
    awake = {
        (policy, rounds): _observed(launch, LD_PRELOAD=path, OMP_WAIT_POLICY=policy, GOMP_SPINCOUNT=rounds).awake_ms
        for policy, rounds in ((None, None), ("passive", None), ("active", None), ("passive", "infinite"))
    }
    assert awake["active", None] == awake["passive", "infinite"] == 40
    passive, default = awake["passive", None], awake[None, None]
    assert passive is not None
    assert default is not None
    assert passive < 0.5 <= default
    assert _observed(launch, LD_PRELOAD=path, OMP_NUM_THREADS="1").awake_ms is None


@pytest.mark.parametrize(("asked", "shortest", "longest"), [("0", 0, 1), ("20", 1, 60), ("infinite", 100, 100)])
def test_being_awake_is_what_blocktime_says(asked: str, shortest: float, longest: float, launch: Launch) -> None:
    """Watched, Intel's threads use their CPU for as long as they were told to, less what others have of that time."""
    code = (
        "import os, time\n"
        "from pinstripe.runtime import openmp_team\n"
        "from pinstripe.runtime.idle_threads import awake_ms\n"
        "others = [t.tid for t in openmp_team() if t.tid != os.getpid()]\n"
        "used_ns = lambda tid: int(open(f'/proc/self/task/{tid}/schedstat').read().split()[0])\n"
        "def work():\n"
        "    begin_ns, before_ns = time.monotonic_ns(), {tid: used_ns(tid) for tid in others}\n"
        "    openmp_team()\n"
        "    return before_ns, begin_ns\n"
        "print(awake_ms(work, 100))"
    )
    variables = {"OMP_NUM_THREADS": "2", "LD_PRELOAD": _library("iomp"), "KMP_BLOCKTIME": asked}
    process = launch(code, environment=_CLEAN | variables)
    assert process.wait(60) == 0, process.output_tail()
    assert shortest <= float(process.output_tail()) <= longest


def test_threads_that_are_gone() -> None:
    """Where no state can be read nothing is claimed."""
    assert awake_ms(lambda: ({2**22 + 1: 0}, 0), 10) is None


def test_on_a_busy_machine(launch: Launch) -> None:
    """Whoever else wants the CPUs, threads that sleep at once are told from those that never do."""
    cpus = _two_cpus()
    load = [launch("while True: pass", cpus=cpus) for _ in range(4)]
    try:
        passive, active = (
            _observed(launch, LD_PRELOAD=_library("gomp"), OMP_WAIT_POLICY=policy).awake_ms
            for policy in ("passive", "active")
        )
    finally:
        for process in load:
            process.stop(grace_s=0)
    assert passive is not None
    assert passive < 0.5
    assert active == 40


def test_without_accounting_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that does not say how long threads ran leaves what has passed: here 20 ms since work was done."""
    stopped = threading.Event()
    thread = threading.Thread(target=stopped.wait)
    thread.start()
    tid = thread.native_id or 0
    try:
        assert awake_ms(lambda: ({tid: time.thread_time_ns() * 10}, time.monotonic_ns() - 20_000_000), 30) == 0
        monkeypatch.setattr(idle_threads, "_cpu_ns", lambda _: None)
        passed = awake_ms(lambda: ({tid: 0}, time.monotonic_ns() - 20_000_000), 30)
    finally:
        stopped.set()
        thread.join()
    assert passed is not None
    assert 20 <= passed <= 30
