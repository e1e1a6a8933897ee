"""The system's mode of transparent huge pages, changed for a while: Documentation/admin-guide/mm/transhuge.rst."""

import fcntl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, Literal, get_args

from pinstripe.errors import KnobError, StartError
from pinstripe.runtime import system_huge_pages_guard as guard

__all__ = ["SystemHugePages", "system_huge_pages"]

SystemHugePages = Literal["always", "madvise", "never"]

_MODE_FILE: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@contextmanager
def system_huge_pages(mode: SystemHugePages, say: Callable[[str], None], path: Path = _MODE_FILE) -> Iterator[None]:
    """Set the mode for all processes of the system; what was there is restored in the end, even after `kill -9`.

    A second process does that, which lives until this one has left the context or is gone. Where somebody else changes
    the mode meanwhile, theirs is left.

    Args:
        mode: The mode.
        say: Is told, in a sentence, why the mode was not restored; not called if it was.
        path: The kernel's file.

    Raises:
        KnobError: There is no such mode or file, this process may not write it, or another run has it changed.
        StartError: The second process could not be started; nothing has been changed.
    """
    if mode not in get_args(SystemHugePages):
        raise KnobError(f"system huge pages cannot be {mode!r}; use {', '.join(get_args(SystemHugePages))}")
    with _opened(path, mode) as file:
        if _lock(file, path, mode) == mode:
            yield
            return
        before = guard.read_mode(path)
        restorer = _start_guard(path, before, mode, file.fileno())
        try:
            _write(path, mode)
            yield
        finally:
            left, _ = restorer.communicate()
            if restorer.returncode != 0:  # somebody killed it
                left = guard.restore(path, before, mode)
            if left:
                say(left)


def _lock(file: IO[str], path: Path, mode: str) -> str:
    """Lock the file, alone to change its mode, and together with others to rely on it; return the mode in force.

    Raises:
        KnobError: Another run has changed the mode, or relies on another one.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise KnobError(f"another run has changed {path} and will restore it; wait for its end") from None
    now = guard.read_mode(path)
    if now == mode:
        return now
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise KnobError(f"another run relies on the mode {now} of {path}; wait for its end") from None
    return guard.read_mode(path)


def _opened(path: Path, mode: str) -> IO[str]:
    """Open the file as it will be written, which shows whether that is allowed; nothing is written yet.

    Raises:
        KnobError: It cannot be written.
    """
    try:
        return path.open("r+")
    except FileNotFoundError:
        raise KnobError(f"this kernel has no transparent huge pages: there is no {path}") from None
    except OSError as error:
        raise _refusal(path, mode, error) from None


def _write(path: Path, mode: str) -> None:
    """Set the mode, and see that the kernel took it.

    Raises:
        KnobError: It did not.
    """
    try:
        path.write_text(mode)
    except OSError as error:
        raise _refusal(path, mode, error) from None
    if (now := guard.read_mode(path)) != mode:
        raise KnobError(f"the kernel keeps huge pages at {now} although {mode} was written to {path}")


def _refusal(path: Path, mode: str, error: OSError) -> KnobError:
    return KnobError(
        f"the system's huge pages cannot be changed ({path}: {error.strerror}); run this as root, where /sys is "
        f"writable, or ask your administrator to: echo {mode} > {path}"
    )


def _start_guard(path: Path, before: str, mode: str, lock: int) -> subprocess.Popen[str]:
    """Start what restores the mode, and wait until it is there.

    Raises:
        StartError: It could not be started; nothing has been changed.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(path), before, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(lock,),
            start_new_session=True,
        )
    except OSError as error:
        raise StartError(f"cannot start {sys.executable} to guard {path} ({error}); the mode is unchanged") from error
    if process.stdout is None or not process.stdout.readline():
        process.communicate()
        raise StartError(f"{sys.executable}, started to guard {path}, ended at once; the mode is unchanged")
    return process
