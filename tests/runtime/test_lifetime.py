"""The end of a process: polite, forced, together with its group, and with its parent."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from pinstripe.runtime import Process

Launch = Callable[..., Process]
WaitUntil = Callable[[Callable[[], object]], None]
Children = Callable[[], set[int]]

IGNORE_SIGTERM = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""
HANDLE_SIGTERM = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("ready", flush=True)
time.sleep(60)
"""
WITH_GRANDCHILD = """
import subprocess, sys, time
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
time.sleep(float(sys.argv[1]))
"""
PARENT = """
import sys, threading, time
from pinstripe.runtime import StartRequest, start
def begin():
    print(start(StartRequest(argv=("sleep", "60"))).pid, flush=True)
if sys.argv[1] == "thread":
    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
else:
    begin()
time.sleep(60)
"""


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_poll_and_wait_tell_the_status(launch: Launch) -> None:
    """A running process has none; an ended one its exit code, again and again."""
    process = launch("import sys; sys.exit(7 + len(sys.stdin.read()))")
    assert process.wait() == 7
    assert (process.poll(), process.wait(), process.stop()) == (7, 7, 7)


def test_wait_gives_up_after_its_timeout(launch: Launch) -> None:
    """A process that runs on is waited for as long as asked, not longer."""
    process = launch(argv=("sleep", "60"))
    begin = monotonic()
    assert process.wait(0.3) is None
    assert 0.3 <= monotonic() - begin < 3
    assert process.poll() is None


def test_death_by_signal_is_a_negative_status(launch: Launch, children: Children) -> None:
    """SIGKILL from outside is seen as -9, and leaves no zombie."""
    process = launch(argv=("sleep", "60"))
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10) == -9
    assert process.pid not in children()


def test_stop_is_polite_first(launch: Launch, wait_until: WaitUntil) -> None:
    """A process that handles SIGTERM ends by its own will, in far less than the grace time."""
    process = launch(HANDLE_SIGTERM)
    wait_until(process.output_tail)
    begin = monotonic()
    assert process.stop(grace_s=30) == 5
    assert monotonic() - begin < 10


def test_stop_kills_what_ignores_sigterm(launch: Launch, wait_until: WaitUntil, children: Children) -> None:
    """After the grace time SIGKILL follows."""
    process = launch(IGNORE_SIGTERM)
    wait_until(process.output_tail)
    begin = monotonic()
    assert process.stop(grace_s=0.5) == -9
    assert monotonic() - begin >= 0.5
    assert process.pid not in children()


@pytest.mark.parametrize(("code", "status"), [(HANDLE_SIGTERM, 5), (IGNORE_SIGTERM, -9)])
def test_stop_ends_a_suspended_process(launch: Launch, wait_until: WaitUntil, code: str, status: int) -> None:
    """SIGSTOP does not protect from stop; a suspended process still gets its chance to end politely."""
    process = launch(code)
    wait_until(process.output_tail)
    os.kill(process.pid, signal.SIGSTOP)
    assert process.stop(grace_s=3) == status


def test_stop_reaches_grandchildren(launch: Launch, wait_until: WaitUntil) -> None:
    """What the process started itself ends with it."""
    process = launch(argv=(sys.executable, "-c", WITH_GRANDCHILD, "60"))
    wait_until(process.output_tail)
    grandchild = int(process.output_tail())
    assert is_running(grandchild)
    process.stop()
    wait_until(lambda: not is_running(grandchild))


def test_grandchildren_end_when_the_process_ends_by_itself(launch: Launch, wait_until: WaitUntil) -> None:
    """Strays of a process that ended, or crashed, are removed when its end is noticed."""
    process = launch(argv=(sys.executable, "-c", WITH_GRANDCHILD, "0"))
    assert process.wait(20) == 0
    grandchild = int(process.output_tail())
    wait_until(lambda: not is_running(grandchild))


def test_stop_from_many_threads(launch: Launch) -> None:
    """Stopping at the same time from several threads gives all of them the status."""
    process = launch(argv=("sleep", "60"))
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(process.stop())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [-15] * 8


@pytest.mark.parametrize("where", ["main", "thread"])
def test_dies_with_its_parent(wait_until: WaitUntil, where: str) -> None:
    """When the parent is killed by SIGKILL its child goes too, whichever thread started it."""
    with subprocess.Popen([sys.executable, "-c", PARENT, where], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout
            child = int(parent.stdout.readline())
            assert is_running(child)
        finally:
            parent.kill()
        wait_until(lambda: not is_running(child))


def test_outlives_the_thread_that_started_it(launch: Launch) -> None:
    """The end of a short-lived thread does not take the process with it."""
    processes: list[Process] = []
    thread = threading.Thread(target=lambda: processes.append(launch(argv=("sleep", "60"))))
    thread.start()
    thread.join()
    assert processes[0].wait(0.5) is None


def test_starts_in_a_forked_process(launch: Launch) -> None:
    """A forked copy, which has lost the thread that starts processes for others, starts its own."""
    code = PARENT.partition("if sys")[0] + (
        "import os\n"
        "def in_thread():\n"
        "    thread = threading.Thread(target=begin); thread.start(); thread.join(20)\n"
        "in_thread()\n"
        "if os.fork() == 0:\n"
        "    in_thread()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    process = launch(code)
    assert process.wait(50) == 0
    assert len(process.output_tail().split()) == 2


def test_output_is_kept_and_never_blocks(launch: Launch) -> None:
    """The last 4 kB of far more than a pipe holds are kept, of both streams, and stay readable after the end."""
    code = "import sys; print('x' * 1_000_000, flush=True); print('last words', file=sys.stderr)"
    process = launch(code)
    assert process.wait(20) == 0
    tail = process.output_tail()
    assert (len(tail), tail[-12:]) == (4096, "\nlast words\n")
