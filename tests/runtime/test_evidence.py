"""Evidence of where a process runs and lives."""

import importlib.util
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from pinstripe.errors import ExecutionError
from pinstripe.runtime import NodeMemory, Process, read_evidence, stray_threads
from pinstripe.runtime.libraries import loaded_allocators, loaded_threading_libraries

Launch = Callable[..., Process]
WaitUntil = Callable[[Callable[[], object]], None]

STATUS = """Name:\t{name}
State:\tS (sleeping)
VmRSS:\t    2048 kB
Cpus_allowed_list:\t{cpus}
voluntary_ctxt_switches:\t{voluntary}
nonvoluntary_ctxt_switches:\t{involuntary}
"""
MAPS = """\
55d0c0000000-55d0c0001000 r--p 00000000 fe:01 11 /usr/bin/python3.11
7f0000000000-7f0000001000 r-xp 00000000 fe:01 12 /opt/my libs/libgomp-a34b3233.so.1.0.0
7f0000001000-7f0000002000 r-xp 00000000 fe:01 12 /opt/my libs/libgomp-a34b3233.so.1.0.0
7f0000002000-7f0000003000 r-xp 00000000 fe:01 13 /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000003000-7f0000004000 rw-p 00000000 00:00 0
7f0000004000-7f0000005000 rw-p 00000000 00:00 0 [stack]
"""
# By hand: anonymous N0 = (3 + 1) * 4096 + 2 * 2 MiB; N1 = 5 * 4096; files N0 = 10 * 4096, N12 = 7 * 65536.
NUMA_MAPS = """\
55d0c0000000 bind:0 file=/usr/bin/python3.11 mapped=10 N0=10 kernelpagesize_kB=4
7f0000000000 bind:0 anon=8 dirty=8 N0=3 N1=5 kernelpagesize_kB=4
7f0000001000 bind:0 file=/data/N3=9\\040odd mapped=7 N12=7 kernelpagesize_kB=64
7f0000002000 bind:0 file=/anon_hugepage\\040(deleted) huge dirty=2 N0=2 kernelpagesize_kB=2048
7f0000003000 bind:0 stack anon=1 dirty=1 N0=1 kernelpagesize_kB=4
7f0000004000 bind:0
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A made-up procfs with process 42, which has two threads."""
    process = tmp_path / "proc/42"
    status = STATUS.format(name="python", cpus="0-1,8", voluntary=5, involuntary=1)
    for thread in (42, 43):
        (process / f"task/{thread}").mkdir(parents=True)
    (process / "status").write_text(status)
    (process / "task/42/status").write_text(status)
    (process / "task/43/status").write_text(STATUS.format(name="a: b", cpus="0-15", voluntary=7, involuntary=2))
    (process / "maps").write_text(MAPS)
    (process / "numa_maps").write_text(NUMA_MAPS)
    (process / "smaps_rollup").write_text("5-7 ---p 0 00:00 0 [rollup]\nPss: 1000 kB\nAnonHugePages:    512 kB\n")
    return tmp_path


def test_reads_all_of_a_made_up_process(root: Path) -> None:
    """Threads, libraries, memory by node and counts are as written in the files."""
    evidence = read_evidence(42, root)
    assert [(thread.tid, thread.name, thread.cpus) for thread in evidence.threads] == [
        (42, "python", (0, 1, 8)),
        (43, "a: b", tuple(range(16))),
    ]
    assert [(library.name, library.path) for library in evidence.threading_libraries] == [
        ("gomp", "/opt/my libs/libgomp-a34b3233.so.1.0.0")
    ]
    assert [library.name for library in evidence.allocators] == ["glibc"]
    assert evidence.node_memory == (
        NodeMemory(node=0, anonymous_bytes=4_210_688, file_bytes=40_960),
        NodeMemory(node=1, anonymous_bytes=20_480, file_bytes=0),
        NodeMemory(node=12, anonymous_bytes=0, file_bytes=458_752),
    )
    assert (evidence.rss_bytes, evidence.pss_bytes, evidence.anonymous_huge_bytes) == (2_097_152, 1_024_000, 524_288)
    assert (evidence.voluntary_switches, evidence.involuntary_switches) == (12, 3)
    assert [thread.tid for thread in stray_threads(evidence, (0, 1, 8))] == [43]


def test_what_the_kernel_does_not_say_is_none_with_a_reason(root: Path) -> None:
    """Missing files and fields give None, and the reason; a thread whose CPUs are unknown counts as a stray."""
    (root / "proc/42/numa_maps").unlink()
    (root / "proc/42/smaps_rollup").unlink()
    (root / "proc/42/task/43/status").write_text("Name:\tx\n")
    evidence = read_evidence(42, root)
    assert evidence.node_memory is None
    assert (evidence.pss_bytes, evidence.anonymous_huge_bytes, evidence.thp_enabled) == (None, None, None)
    assert set(evidence.unread) == {"node_memory", "pss_bytes", "anonymous_huge_bytes", "thp_enabled"}
    assert "No such file" in evidence.unread["node_memory"]
    assert [thread.tid for thread in stray_threads(evidence, range(99))] == [43]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("libgomp.so.1", "gomp"),
        ("libgomp-24e2ab19.so.1.0.0", "gomp"),
        ("libiomp5.so", "iomp"),
        ("libomp.so.5", "omp"),
        ("libomp-b8e5bcfb.so", "omp"),
        ("libtbb.so.12", "tbb"),
        ("libompitrace.so.40", None),
        ("libtbbmalloc.so.2", None),
    ],
)
def test_threading_libraries_by_file_name(file: str, name: str | None) -> None:
    """File names of distributions and wheels are told apart."""
    assert [library.name for library in loaded_threading_libraries([f"/lib/{file}"])] == ([name] if name else [])


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["libc.so.6", "libtcmalloc_minimal.so.4"], ["tcmalloc"]),
        (["libc.so.6", "libjemalloc.so.2"], ["jemalloc"]),
        (["libc.so.6", "libmimalloc.so.3.4"], ["mimalloc"]),
        (["libc.so.6", "libtbbmalloc_proxy.so.2", "libtbbmalloc.so.2"], ["tbbmalloc"]),
        (["libc.so.6", "libtbbmalloc.so.2"], ["glibc"]),
        (["libc-2.31.so"], ["glibc"]),
        (["ld-musl-x86_64.so.1"], ["musl"]),
        (["busybox"], []),
    ],
)
def test_allocators_by_file_name(files: list[str], names: list[str]) -> None:
    """A replacement hides the C library's allocator."""
    assert [library.name for library in loaded_allocators(f"/lib/{file}" for file in files)] == names


def test_real_memory_agrees_with_another_count(launch: Launch, wait_until: WaitUntil) -> None:
    """100 MB that a child touches are on some node, anonymous; all nodes together are what statm calls resident."""
    process = launch("import time; b = b'x' * 100_000_000; print('ready', flush=True); time.sleep(60)")
    wait_until(process.output_tail)
    evidence = read_evidence(process.pid)
    resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert evidence.rss_bytes == pytest.approx(resident, rel=0.02)
    if evidence.node_memory is None:
        pytest.skip("this kernel has no NUMA")
    anonymous = sum(node.anonymous_bytes for node in evidence.node_memory)
    assert 100_000_000 <= anonymous <= 130_000_000
    assert anonymous + sum(node.file_bytes for node in evidence.node_memory) == pytest.approx(resident, rel=0.02)


def test_a_real_openmp_library_is_seen(launch: Launch, wait_until: WaitUntil) -> None:
    """The OpenMP library of torch's wheel, once loaded, is in the evidence."""
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        pytest.skip("torch is not installed")
    library = next(Path(torch.origin).parent.glob("lib/lib*omp*.so*"), None)
    if library is None:
        pytest.skip("this torch carries no OpenMP library")
    process = launch(f"import ctypes, time; ctypes.CDLL({str(library)!r}); print('ready', flush=True); time.sleep(60)")
    wait_until(process.output_tail)
    assert str(library.resolve()) in [found.path for found in read_evidence(process.pid).threading_libraries]


def test_a_thread_that_leaves_the_cpus_is_a_stray(launch: Launch, wait_until: WaitUntil) -> None:
    """A thread that widens its own affinity, as some runtimes do, is found and named."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    code = (
        "import os, threading, time\n"
        f"def leave(): os.sched_setaffinity(0, {cpus}); print(threading.get_native_id(), flush=True); time.sleep(60)\n"
        "threading.Thread(target=leave).start()"
    )
    process = launch(code, cpus=(cpus[0],))
    wait_until(process.output_tail)
    strays = stray_threads(read_evidence(process.pid), (cpus[0],))
    assert [(thread.tid, thread.cpus) for thread in strays] == [(int(process.output_tail()), tuple(cpus))]


def test_threads_may_end_while_they_are_read(launch: Launch, wait_until: WaitUntil) -> None:
    """A process that starts and ends threads all the time can be read at any moment."""
    code = (
        "import threading\nprint('ready', flush=True)\n"
        "while True:\n"
        "    threads = [threading.Thread(target=lambda: None) for _ in range(20)]\n"
        "    for thread in threads: thread.start()"
    )
    process = launch(code)
    wait_until(process.output_tail)
    main_threads = [read_evidence(process.pid).threads[0].tid for _ in range(100)]
    assert main_threads == [process.pid] * 100


def test_ended_processes_have_no_evidence(launch: Launch, wait_until: WaitUntil) -> None:
    """Neither a zombie nor a process that is gone gives evidence; both are one clear line."""
    process = launch(argv=("sleep", "60"))
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: " Z " in Path(f"/proc/{process.pid}/stat").read_text())
    for _ in ("zombie", "gone"):
        with pytest.raises(ExecutionError, match=f"evidence of process {process.pid}") as caught:
            read_evidence(process.pid)
        assert "\n" not in str(caught.value)
        process.wait()
