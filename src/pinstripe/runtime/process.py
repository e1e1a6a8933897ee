"""A started process: watched, stopped and reaped with all of its group."""

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import IO

from pinstripe.errors import ExecutionError
from pinstripe.runtime.memory_policy import MemoryPolicyEffect

__all__ = ["Process"]

_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05
_KILL_LIMIT_S = 10.0  # SIGKILL acts at once, unless the process waits for a device or a file server
_TAIL_BYTES = 4096


class Process:
    """A child process that leads its own session and process group.

    When its end is noticed, what is left of its group is killed and it is reaped, so that it leaves neither a zombie
    nor a stray. A process that leaves the group on purpose (`setsid`) is out of reach. Methods may be called from any
    thread.

    Attributes:
        pid: Its process id, which is also that of its group.
        memory: The memory policy it started with.
    """

    def __init__(self, child: subprocess.Popen[bytes], memory: MemoryPolicyEffect, output: IO[bytes] | None) -> None:
        self.pid = child.pid
        self.memory = memory
        self._child = child
        self._output = output
        self._last_output = ""
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return its exit status, minus the signal's number if one killed it; None while it runs."""
        with self._lock:
            if self._child.returncode is None and _has_ended(self.pid):
                kill_group(self.pid, signal.SIGKILL)  # its zombie still keeps the group's number from being reused
                self._child.wait()
                self._close_output()
            return self._child.returncode

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for its end.

        Args:
            timeout_s: Longest time to wait, in seconds; None for as long as it takes.

        Returns:
            Its exit status as `poll` gives it; None if it still runs after `timeout_s`.
        """
        if timeout_s is None:
            with suppress(ChildProcessError):  # another thread reaped it
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            return self.poll()
        deadline = time.monotonic() + timeout_s
        pause_s = _FIRST_PAUSE_S
        while (status := self.poll()) is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return None
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return status

    def stop(self, grace_s: float = 5.0) -> int:
        """End it, and all of its group: politely (SIGTERM) first, then by SIGKILL. Harmless when it has ended.

        Args:
            grace_s: Time from the first to the second, in seconds.

        Returns:
            Its exit status as `poll` gives it.

        Raises:
            ExecutionError: It survives SIGKILL, which happens while the kernel waits for a device or file server.
        """
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a suspended process can be polite only when it runs again
        status = self.wait(grace_s)
        if status is None:
            self._signal(signal.SIGKILL)
            status = self.wait(_KILL_LIMIT_S)
        if status is None:
            raise ExecutionError(
                f"process {self.pid} did not end {_KILL_LIMIT_S:.0f} s after SIGKILL; it is probably stuck in a system "
                f"call: see /proc/{self.pid}/stack"
            )
        return status

    def output_tail(self) -> str:
        """Return the last 4096 bytes of its standard output and error, where they are kept; else an empty text."""
        with self._lock:
            return self._last_output if self._output is None else _read_tail(self._output)

    def _signal(self, number: signal.Signals) -> None:
        with self._lock:
            if self._child.returncode is None:
                kill_group(self.pid, number)

    def _close_output(self) -> None:
        if self._output is not None:
            self._last_output = _read_tail(self._output)
            self._output.close()
            self._output = None


def _has_ended(pid: int) -> bool:
    """Return whether a child has ended; it is not reaped by this."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # reaped by the kernel: the caller ignores SIGCHLD
        return True


def kill_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to the process group `pid`, as far as there is one and this process may."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _read_tail(file: IO[bytes]) -> str:
    size = os.fstat(file.fileno()).st_size
    # The child shares the file's position, so it is read without moving that.
    return os.pread(file.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode(errors="replace")
