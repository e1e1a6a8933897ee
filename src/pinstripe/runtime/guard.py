"""Kills what is left of process groups when the process that started them is killed.

The kernel kills a child whose parent dies, where that was asked for, but not the child's own children (`man 2
PR_SET_PDEATHSIG`). So a second process, which does nothing else, reads from a pipe which groups there are. The pipe's
end means that the parent is gone. This file is both sides; the guard runs it by path (`-I -S`), without the package.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Self

__all__ = ["Guard"]


class Guard:
    """A process that outlives this one by the moment it takes to kill the groups it was told of; a context manager."""

    def __init__(self) -> None:
        """Start it; it takes about 20 ms and 10 MB, and sleeps.

        Raises:
            OSError: It could not be started.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it; groups it still knows of are killed."""
        self._process.communicate()

    def watch(self, group: int) -> None:
        """Tell it of a process group."""
        self._say(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Tell it that a group has ended: its number may be used by others from now on."""
        self._say(f"-{group}\n")

    def _say(self, line: str) -> None:
        if self._process.stdin is None:
            return
        with suppress(BrokenPipeError, ValueError):  # somebody killed it, or it was ended
            self._process.stdin.write(line.encode())


def main() -> None:
    """Follow the list of groups, and kill what is on it at its end."""
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
