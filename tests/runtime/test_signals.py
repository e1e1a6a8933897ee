"""Requests to end, by signals."""

import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pinstripe.runtime import end_requests


@pytest.fixture
def handlers() -> Iterator[None]:
    """Check that all is as before after the test."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.usefixtures("handlers")
def test_each_is_heard() -> None:
    """By its number, more than once, in order."""
    heard: queue.SimpleQueue[int] = queue.SimpleQueue()
    sent = [signal.SIGTERM, signal.SIGHUP, signal.SIGTERM]
    with end_requests(heard.put):
        for number in sent:
            os.kill(os.getpid(), number)
            assert heard.get(timeout=10) == number


def test_what_is_ignored_stays_so() -> None:
    """As under nohup: SIGHUP does nothing, SIGTERM is heard."""
    code = (
        "import os, queue, signal\n"
        "from pinstripe.runtime import end_requests\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "heard = queue.SimpleQueue()\n"
        "with end_requests(heard.put):\n"
        "    os.kill(os.getpid(), signal.SIGHUP); os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print(heard.get(timeout=10), signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "15 True\n"


def test_a_signal_is_heard_while_the_main_thread_sleeps() -> None:
    """Whenever it comes: often just as the main thread begins to wait, and other threads hold it up with that.

    A handler in Python that puts the number into the queue hangs here within the first few signals.
    """
    code = (
        "import queue, subprocess, threading, time\n"
        "from pinstripe.runtime import end_requests\n"
        "heard = queue.SimpleQueue()\n"
        "def work():\n"
        "    while True: time.sleep(0); sum(range(200))\n"
        "for _ in range(2): threading.Thread(target=work, daemon=True).start()\n"
        "killer = subprocess.Popen(['sh', '-c', 'while read _; do kill -TERM $PPID; done'], stdin=subprocess.PIPE)\n"
        "with end_requests(heard.put):\n"
        "    for _ in range(50):\n"
        "        killer.stdin.write(b'\\n'); killer.stdin.flush()\n"
        "        heard.get()\n"
        "killer.stdin.close(); killer.wait(); print('all')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30)
    assert run.stdout == "all\n"
