"""Several processes that run and end together, and all that can go wrong with them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep

import pytest

from pinstripe.errors import ExecutionError, StartError
from pinstripe.runtime import Group, GroupResult, Process, StartRequest

Children = Callable[[], set[int]]
WaitUntil = Callable[[Callable[[], object]], None]

IGNORE_SIGTERM = "trap '' TERM; touch ready; while :; do sleep 1; done"
PARENT = """
import sys
from pinstripe.runtime import Group, StartRequest
requests = [StartRequest(argv=("sh", "-c", script)) for script in sys.argv[1:]]
Group(grace_s=5).run(requests, [b"[%d] " % number for number in range(len(requests))])
"""


@pytest.fixture(autouse=True)
def nothing_is_left(children: Children) -> object:
    """No child of this process is left by any test, not even a zombie."""
    before = children()
    yield
    assert children() == before


def shells(*scripts: str) -> list[StartRequest]:
    """Return requests for shell scripts."""
    return [StartRequest(argv=("sh", "-c", script)) for script in scripts]


def run(*scripts: str, grace_s: float = 5.0, keep_going: bool = False) -> GroupResult:
    """Run shell scripts as a group."""
    return Group(grace_s=grace_s, keep_going=keep_going).run(shells(*scripts))


def wait_for(path: Path) -> str:
    """Return a shell command that waits until a file is there."""
    return f"until [ -e {path} ]; do sleep 0.05; done"


def outcomes(result: GroupResult) -> list[tuple[str, int | None]]:
    """Return (outcome, status) of each."""
    return [(member.outcome, member.status) for member in result.members]


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def interrupt_when(group: Group, condition: Callable[[], object], numbers: Sequence[int] = (signal.SIGINT,)) -> None:
    """Interrupt a group from another thread, once a condition holds, with some time between."""

    def wait() -> None:
        deadline = monotonic() + 20
        while not condition() and monotonic() < deadline:
            sleep(0.01)
        for number in numbers:
            group.interrupt(number)
            sleep(0.3)

    threading.Thread(target=wait, daemon=True).start()


def test_all_succeed() -> None:
    """Exit code 0; each on its CPUs, with the memory policy that took effect, and how long it ran."""
    cpu = max(os.sched_getaffinity(0))
    result = Group().run(
        [
            StartRequest(argv=("sleep", "0.2"), cpus=(cpu,), memory_policy="none"),
            StartRequest(argv=("true",), memory_policy="local"),
        ]
    )
    first, second = result.members
    assert (result.exit_code, first.outcome, second.outcome) == (0, "succeeded", "succeeded")
    assert 0.2 <= first.duration_s < 5
    assert (first.cpus, second.cpus) == ((cpu,), None)
    assert first.memory
    assert second.memory
    assert (first.memory.requested, second.memory.effective) == ("none", "local")


@pytest.mark.parametrize(
    ("script", "status", "exit_code"), [("exit 7", 7, 7), ("kill -9 $$", -9, 137), ("kill -TERM $$", -15, 143)]
)
def test_one_that_fails_stops_the_others(script: str, status: int, exit_code: int) -> None:
    """At once, and its own exit code counts, as a shell gives it."""
    begin = monotonic()
    result = run("sleep 60", "sleep 60", f"sleep 0.2; {script}")
    assert monotonic() - begin < 5
    assert result.exit_code == exit_code
    assert outcomes(result) == [("stopped", -15), ("stopped", -15), ("failed", status)]


def test_the_others_may_run_on(tmp_path: Path) -> None:
    """The exit code is that of the first that failed, by the clock."""
    result = run(f"{wait_for(tmp_path / 'go')}; exit 3", "exit 4", f"sleep 0.3; touch {tmp_path}/go", keep_going=True)
    assert result.exit_code == 4
    assert outcomes(result) == [("failed", 3), ("failed", 4), ("succeeded", 0)]


def test_who_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """After the grace time, with its children; one that was stopped is not what failed first."""
    ready = tmp_path / "ready"
    begin = monotonic()
    result = run(f"cd {tmp_path}; {IGNORE_SIGTERM}", f"{wait_for(ready)}; exit 5", grace_s=0.5)
    assert 0.5 <= monotonic() - begin < 10
    assert result.exit_code == 5
    assert outcomes(result) == [("stopped", -9), ("failed", 5)]


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interruption_stops_all(number: int, exit_code: int, tmp_path: Path) -> None:
    """Politely: a program may clean up; the exit code tells the signal."""
    group = Group(grace_s=20)
    script = f"trap 'touch {tmp_path}/cleaned; exit 0' TERM; touch {tmp_path}/ready; sleep 60 & wait"
    last = tmp_path / "last"
    interrupt_when(group, lambda: (tmp_path / "ready").exists() and last.exists(), [number])
    result = group.run(shells(script, f"touch {last}; exec sleep 60"))
    assert result.exit_code == exit_code
    assert [member.outcome for member in result.members] == ["stopped", "stopped"]
    assert (tmp_path / "cleaned").exists()


def test_a_second_interruption_waits_no_longer(tmp_path: Path) -> None:
    """Impatience is heard: SIGKILL at once."""
    group = Group(grace_s=60)
    interrupt_when(group, (tmp_path / "ready").exists, [signal.SIGINT, signal.SIGINT])
    begin = monotonic()
    result = group.run(shells(f"cd {tmp_path}; {IGNORE_SIGTERM}"))
    assert monotonic() - begin < 20
    assert outcomes(result) == [("stopped", -9)]


def test_interrupted_before_all_are_started() -> None:
    """The rest is not started."""
    group = Group()
    group.interrupt(signal.SIGINT)
    result = group.run(shells("sleep 60", "sleep 60"))
    assert result.exit_code == 130
    assert outcomes(result) == [("not-started", None), ("not-started", None)]


def test_what_cannot_be_started_stops_the_others(tmp_path: Path) -> None:
    """A program that does not exist: one clear error, and those before it are gone."""
    requests = [
        *shells(f"trap 'touch {tmp_path}/stopped; exit' TERM; touch {tmp_path}/ready; while :; do sleep 0.1; done"),
        *shells(wait_for(tmp_path / "ready")),
        StartRequest(argv=("no-such-program",)),
    ]
    with pytest.raises(StartError, match="cannot execute 'no-such-program'"):
        Group().run(requests, [b""] * 3)


def test_children_of_children_end_with_them(tmp_path: Path, wait_until: WaitUntil) -> None:
    """Of a pipeline, and one left in the background by a program that ended well."""
    run(f"sleep 60 & echo $! > {tmp_path}/background")
    run(
        f"sh -c 'echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pipeline; exec sleep 60' | cat",
        f"{wait_for(tmp_path / 'pipeline')}; exit 1",
    )
    pids = [int((tmp_path / name).read_text()) for name in ("background", "pipeline")]
    wait_until(lambda: not any(map(is_running, pids)))


def test_nothing_survives_the_death_of_the_parent(tmp_path: Path, wait_until: WaitUntil) -> None:
    """Kill -9: programs, their pipelines and those that ignore SIGTERM go too, and so does the guard."""
    script = f"sh -c 'echo $$ > {tmp_path}/$0.new; mv {tmp_path}/$0.new {tmp_path}/$0; exec sleep 60' %s | cat"
    with subprocess.Popen([sys.executable, "-c", PARENT, script % "a", "trap '' TERM;" + script % "b"]) as parent:
        wait_until(lambda: all((tmp_path / name).exists() for name in "ab"))
        listed = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        pids = [*map(int, listed), *(int((tmp_path / name).read_text()) for name in "ab")]
        assert len(pids) == 5  # two shells, their sleeps, the guard
        parent.kill()
    wait_until(lambda: not any(map(is_running, pids)))


def lines_of(*scripts: str, seconds: float = 20) -> tuple[int, list[bytes], list[bytes]]:
    """Run scripts with prefixed output in a process of its own; return its status and lines of output and errors."""
    finished = subprocess.run(
        [sys.executable, "-c", PARENT, *scripts], capture_output=True, timeout=seconds, check=False
    )
    return finished.returncode, finished.stdout.splitlines(), finished.stderr.splitlines()


def test_output_and_errors_stay_apart() -> None:
    """A pipeline's output with each one's prefix, errors on standard error; a last line without end gets one."""
    status, output, errors = lines_of("echo a | tr a b; printf last", "echo problem >&2; printf '\\377\\000\\n'")
    assert status == 0
    assert sorted(output) == [b"[0] b", b"[0] last", b"[1] \xff\x00"]
    assert errors == [b"[1] problem"]


def test_much_output_is_all_there() -> None:
    """Tens of megabytes from two at a time: every line, whole, in order."""
    status, output, _ = lines_of("seq 1 300000", "seq 1 300000")
    assert status == 0
    for prefix in (b"[0] ", b"[1] "):
        mine = [line for line in output if line.startswith(prefix)]
        assert mine == [prefix + b"%d" % number for number in range(1, 300001)]
    assert len(output) == 600000


def test_closing_ones_output_is_no_end() -> None:
    """A program that closes its output and goes on is waited for."""
    status, output, _ = lines_of("echo x; exec >&- 2>&-; sleep 0.3")
    assert (status, output) == (0, [b"[0] x"])


def test_a_daemon_that_keeps_the_output_open_is_not_waited_for(tmp_path: Path) -> None:
    """What has left the group on purpose is out of reach, and must not hold up the end."""
    begin = monotonic()
    try:
        daemon = f"setsid sh -c 'echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 30' 2>/dev/null"
        _, output, _ = lines_of(f"{daemon} & {wait_for(tmp_path / 'pid')}")
        assert output == []
        assert monotonic() - begin < 15
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_reader_that_goes_away_ends_all() -> None:
    """As in `… | head -1`: an endless writer does not run on."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, "yes", "sleep 60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"[0] y\n"
        parent.stdout.close()
        assert parent.wait(20) == 1
        assert parent.stderr
        assert b"BrokenPipeError" in parent.stderr.read()


def test_the_parent_sleeps_meanwhile() -> None:
    """Waiting for two sleepers for a second costs next to no CPU time."""
    group = Group()
    before = os.times()
    group.run(shells("sleep 1", "sleep 1"))
    after = os.times()
    assert (after.user + after.system) - (before.user + before.system) < 0.3


def test_one_that_even_sigkill_does_not_end(
    monkeypatch: pytest.MonkeyPatch, children: Children, wait_until: WaitUntil
) -> None:
    """As one that the kernel keeps waiting for a device: it is said, and not waited for."""

    def stop(_process: Process, grace_s: float) -> int:
        raise ExecutionError(f"did not end after {grace_s} s")

    before = children()
    monkeypatch.setattr(Process, "stop", stop)
    result = run("sleep 60", "exit 1")
    assert result.exit_code == 1
    assert outcomes(result) == [("stuck", None), ("failed", 1)]
    wait_until(lambda: children() == before)
