"""Starting a process: cores, memory, environment, descriptors, and what goes wrong."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pinstripe.errors import StartError
from pinstripe.runtime import Process, read_evidence, starting

Launch = Callable[..., Process]
Children = Callable[[], set[int]]

LAST_CPU = max(os.sched_getaffinity(0))
ABSENT_CPU = (os.cpu_count() or 1) + 4000
SLEEP = "import time; print('ready', flush=True); time.sleep(60)"


def test_pins_the_process_and_its_later_threads(launch: Launch, wait_until: Callable[..., None]) -> None:
    """All threads, also one that starts later, may run on the one CPU that was asked for only."""
    code = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()"
    process = launch(code, cpus=(LAST_CPU,))
    wait_until(lambda: len(read_evidence(process.pid).threads) == 2)
    threads = [int(entry.name) for entry in Path(f"/proc/{process.pid}/task").iterdir()]
    assert [os.sched_getaffinity(thread) for thread in threads] == [{LAST_CPU}, {LAST_CPU}]


def test_unpinned_inherits_the_affinity(launch: Launch) -> None:
    """Without CPUs the child may run where the parent may."""
    assert os.sched_getaffinity(launch(SLEEP).pid) == os.sched_getaffinity(0)


@pytest.mark.parametrize(
    ("policy", "nodes", "shown"),
    [
        ("none", (), "default"),
        ("local", (), "local"),
        ("bind", (0,), "bind:0"),
        ("preferred", (0,), "prefer:0"),
        ("interleave", (0,), "interleave:0"),
    ],
)
def test_memory_policy_takes_effect(launch: Launch, policy: str, nodes: tuple[int, ...], shown: str) -> None:
    """The kernel's own listing of the child's memory names the policy."""
    process = launch(SLEEP, memory_policy=policy, nodes=nodes)
    listing = Path(f"/proc/{process.pid}/numa_maps")
    if not listing.exists():
        pytest.skip("this kernel has no NUMA")
    assert {line.split()[1] for line in listing.read_text().splitlines()} == {shown}
    assert (process.memory.requested, process.memory.effective, process.memory.nodes) == (policy, policy, nodes)


def test_auto_does_nothing_on_one_node(launch: Launch) -> None:
    """On a machine with one node, auto resolves to first touch and says why."""
    if Path("/sys/devices/system/node/node1").exists():
        pytest.skip("this machine has several nodes")
    memory = launch(SLEEP, nodes=(0,)).memory
    assert (memory.requested, memory.effective, memory.why) == ("auto", "none", "one node: first touch")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cpus": (LAST_CPU, ABSENT_CPU)}, f"grants only {LAST_CPU}"),
        ({"cpus": (ABSENT_CPU,)}, "Invalid argument"),
        ({"cpus": ()}, "CPUs none"),
        ({"cpus": (-1,)}, "negative CPU number"),
        ({"memory_policy": "bind", "nodes": (1005,)}, r"bind on nodes 1005 .*Invalid argument.* may use: 0"),
        ({"memory_policy": "bind", "nodes": (0, 1005)}, "the kernel made it bind 0"),
        ({"memory_policy": "bind", "nodes": (5000,)}, "no NUMA node has the number 5000"),
        ({"memory_policy": "interleave"}, "needs the NUMA nodes"),
        ({"argv": ("no-such-command",)}, "cannot execute 'no-such-command' .No such file"),
        ({"argv": ("/proc/version",)}, "Permission denied"),
        ({"argv": ()}, "no command"),
        ({"argv": ("a\nb",)}, r"'a\\nb'"),
        ({"environment": {"A=B": "1"}}, "illegal environment variable name"),
        ({"pass_fds": (9999,)}, "Bad file descriptor"),
    ],
)
def test_what_cannot_be_had_is_one_clear_line(
    launch: Launch, children: Children, fields: dict[str, object], message: str
) -> None:
    """Every refusal is a StartError of one line, and no process, not even a zombie, is left."""
    before = children()
    with pytest.raises(StartError, match=message) as caught:
        launch(**fields)
    assert "\n" not in str(caught.value)
    assert children() == before


def test_command_never_runs_when_a_policy_does_not_take_effect(launch: Launch, tmp_path: Path) -> None:
    """The check comes before the command: it has not left a trace."""
    trace = tmp_path / "trace"
    with pytest.raises(StartError):
        launch(argv=("touch", str(trace)), memory_policy="bind", nodes=(0, 1005))
    assert not trace.exists()


def test_broken_interpreter_is_reported(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the interpreter that should prepare the start ends early, that is said."""
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with pytest.raises(StartError, match="/bin/true ended before it could start 'sleep'"):
        launch(argv=("sleep", "60"))


def test_environment_changes_in_the_child_only(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are added, replaced and removed for the child, bytes that are no text included; not for the parent."""
    monkeypatch.setenv("CHANGED_REMOVED", "old")
    monkeypatch.setenv("CHANGED_REPLACED", "old")
    monkeypatch.setenv("CHANGED_KEPT", "old\udcff")
    before = dict(os.environ)
    environment = {"CHANGED_REMOVED": None, "CHANGED_REPLACED": "new", "CHANGED_ADDED": "ö"}
    process = launch(SLEEP, environment=environment)
    lines = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    assert sorted(line for line in lines if line.startswith(b"CHANGED_")) == [
        b"CHANGED_ADDED=" + "ö".encode(),
        b"CHANGED_KEPT=old\xff",
        b"CHANGED_REPLACED=new",
    ]
    assert dict(os.environ) == before


def test_large_environments_pass(launch: Launch) -> None:
    """More than a pipe holds reaches the child."""
    values = {f"PINSTRIPE_{number}": "x" * 100_000 for number in range(10)}
    process = launch("import os; print(sum(len(v) for v in os.environ.values()) > 10**6)", environment=values)
    assert (process.wait(20), process.output_tail()) == (0, "True\n")


def test_commands_are_found_in_the_childs_path(launch: Launch, tmp_path: Path) -> None:
    """A PATH given for the child is the one that counts."""
    (tmp_path / "mine").symlink_to("/bin/echo")
    process = launch(argv=("mine", "found"), environment={"PATH": str(tmp_path)})
    assert (process.wait(10), process.output_tail()) == (0, "found\n")


def test_only_the_descriptors_asked_for_are_passed(launch: Launch) -> None:
    """The child has the three standard descriptors and the one that was passed, and writes to it."""
    reader, writer = os.pipe()
    try:
        code = f"import os; os.write({writer}, ' '.join(sorted(os.listdir('/proc/self/fd'))).encode())"
        process = launch(code, pass_fds=(writer,))
        assert process.wait(20) == 0
        listing = "3"  # the listing itself is the lowest free number
        expected = {"0", "1", "2", str(writer), listing if str(writer) != listing else "4"}
        assert set(os.read(reader, 1000).decode().split()) == expected
    finally:
        os.close(reader)
        os.close(writer)


def test_leads_its_own_session_with_clean_signals(launch: Launch) -> None:
    """It has its own session and group, and what the parent's thread blocks or ignores is not inherited."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        process = launch(argv=("sleep", "60"))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    assert (os.getsid(process.pid), os.getpgid(process.pid)) == (process.pid, process.pid)
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    # The C library keeps signals 32 and 33 for itself, and nobody can restore them: what started us may ignore them.
    ours = ~(0b11 << 31)
    masks = {line[:6]: int(line[7:], 16) & ours for line in status if line.startswith(("SigBlk", "SigIgn"))}
    assert masks == {"SigBlk": 0, "SigIgn": 0}


def test_many_threads_may_start_at_once(launch: Launch) -> None:
    """Starts from several threads at a time give that many processes, each on its own terms."""
    processes: list[Process] = []
    cpus = sorted(os.sched_getaffinity(0))

    def _start(number: int) -> None:
        processes.append(launch(SLEEP, cpus=(cpus[number % len(cpus)],), environment={"PINSTRIPE_N": str(number)}))

    threads = [threading.Thread(target=_start, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    environments = [Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0") for process in processes]
    numbers = [int(v[12:]) for variables in environments for v in variables if v.startswith(b"PINSTRIPE_N=")]
    assert sorted(numbers) == list(range(6))
    assert all(
        os.sched_getaffinity(process.pid) == {cpus[number % len(cpus)]}
        for process, number in zip(processes, numbers, strict=True)
    )


def test_silent_interpreter_is_given_up(
    launch: Launch, children: Children, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An interpreter that never answers is stopped after the limit, and leaves nothing."""
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(silent))
    monkeypatch.setattr(starting, "_ANSWER_LIMIT_S", 0.5)
    before = children()
    with pytest.raises(StartError, match="no sign of life"):
        launch()
    assert children() == before


def test_importing_is_cheap() -> None:
    """The package can be used where there is no numpy and no framework."""
    code = "import sys, pinstripe.runtime; print(sorted({'numpy', 'torch', 'threadpoolctl'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "[]\n"


def test_too_many_open_files_is_one_clear_line() -> None:
    """A parent that has used up its file descriptors is told so."""
    code = (
        "import resource\n"
        "from pinstripe.errors import StartError\n"
        "from pinstripe.runtime import StartRequest, start\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n"
        "try: start(StartRequest(argv=('true',)))\n"
        "except StartError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.count("\n") == 1
    assert "Too many open files" in run.stdout
