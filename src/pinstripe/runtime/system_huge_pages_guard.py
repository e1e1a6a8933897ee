"""Puts the system's mode of transparent huge pages back when the process that changed it is gone, however it ended.

Run by path (`-I -S`), without the package: it holds standard input, a pipe, open until the other end closes. It shares
the lock on the file with its parent, so that nobody takes the file over before it is restored.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["main", "read_mode", "restore"]


def read_mode(path: Path) -> str:
    """Return the mode in force, which the kernel marks by brackets: `always [madvise] never`.

    Raises:
        OSError: It cannot be read.
    """
    text = path.read_text()
    return text.partition("[")[2].partition("]")[0] or text.strip()


def restore(path: Path, before: str, ours: str) -> str:
    """Write back what was there, unless somebody else has changed it meanwhile.

    Args:
        path: The file.
        before: The mode that was there.
        ours: The mode that was set instead.

    Returns:
        A sentence on why it was not restored; empty if it was.
    """
    try:
        now = read_mode(path)
        if now == ours:
            path.write_text(before)
        elif now != before:
            return f"{path} was set to {now} by somebody else meanwhile, so it is left so; it was {before} before"
    except OSError as error:
        return f"{path} could not be set back to {before} ({error.strerror}); do it by hand: echo {before} > {path}"
    return ""


def main() -> None:
    """Wait for the end of the parent, then restore the mode; the arguments are those of `restore`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # whoever stops the parent's group means the parent
        signal.signal(number, signal.SIG_IGN)
    os.write(sys.stdout.fileno(), b"ready\n")
    sys.stdin.read()
    left = restore(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
    with suppress(BrokenPipeError):  # nobody is left to read it
        os.write(sys.stdout.fileno(), left.encode())


if __name__ == "__main__":
    main()
