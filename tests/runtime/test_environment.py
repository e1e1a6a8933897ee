"""Thread counts for a child, judged by the libraries that obey them."""

import os
from collections.abc import Callable

import pytest

from pinstripe.runtime import Process, thread_environment

Launch = Callable[..., Process]


def test_the_framework_default_is_left_alone() -> None:
    """Without a thread count nothing is set or removed, not even what would fight with pinning."""
    assert thread_environment(None, {"OMP_PROC_BIND": "true"}) == {}


def test_removes_only_what_is_there() -> None:
    """The changes say what was really removed from the parent's environment."""
    changes = thread_environment(2, {"OMP_PROC_BIND": "true", "KMP_AFFINITY": "compact", "HOME": "/"})
    assert {name for name, value in changes.items() if value is None} == {"OMP_PROC_BIND", "KMP_AFFINITY"}


@pytest.mark.parametrize("name", ["KMP_ALL_THREADS", "KMP_DEVICE_THREAD_LIMIT", "OMP_MAX_ACTIVE_LEVELS"])
def test_what_would_cap_the_team_is_removed(name: str) -> None:
    """Each of these, left over, would have fewer threads compute than were asked for (see the OpenMP runtimes)."""
    assert thread_environment(2, {name: "0"})[name] is None


def test_numpys_library_obeys(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenBLAS, asked by threadpoolctl, has the threads that were asked for, whatever the parent's variables say."""
    if (os.cpu_count() or 1) < 2:
        pytest.skip("OpenBLAS never starts more threads than there are CPUs")
    code = "import numpy, threadpoolctl as t; print([i['num_threads'] for i in t.threadpool_info()])"
    for inherited, asked in ((2, 1), (1, 2)):
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", str(inherited))
        process = launch(code, environment=thread_environment(asked, os.environ))
        assert (process.wait(60), process.output_tail()) == (0, f"[{asked}]\n")


def test_torch_obeys_and_keeps_its_cpus(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch counts the threads asked for, and inherited OpenMP binding does not narrow its main thread to one CPU."""
    pytest.importorskip("torch")
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    code = (
        "import os, torch; torch.ones(300, 300) @ torch.ones(300, 300)\n"
        "print(torch.get_num_threads(), sorted(os.sched_getaffinity(0)))"
    )
    process = launch(code, cpus=tuple(cpus), environment=thread_environment(2, os.environ))
    assert (process.wait(100), process.output_tail()) == (0, f"2 {cpus}\n")
