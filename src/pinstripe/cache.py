"""The directory for things that are costly to make: exported models, random weights. Safe under concurrent starts."""

import errno
import fcntl
import logging
import os
import re
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, TypeVar

from pinstripe.errors import ExecutionError

__all__ = ["build_once", "cache_directory", "load_once_built"]

T = TypeVar("T")

_WAIT_LIMIT_S: Final = 45 * 60.0
"""For another process that builds the same; longer than any build may take (an export is stopped after 30 minutes)."""
_SILENT_S: Final = 2.0
"""A wait that is not worth a word, such as that of instances that start together."""
_POLL_S: Final = 0.05
_FULL_BYTES: Final = 1 << 20
"""Free space below which a build that failed is taken to have failed for the want of it."""


def cache_directory() -> Path:
    """Return `$PINSTRIPE_CACHE`, else `$XDG_CACHE_HOME/pinstripe`, else `~/.cache/pinstripe` (not created)."""
    if named := os.environ.get("PINSTRIPE_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pinstripe"


def build_once(directory: Path, build: Callable[[Path], None], *, stop: threading.Event | None = None) -> Path:
    """Return `directory`, building it first if it does not exist; only one of several concurrent callers builds.

    The others wait, and after 2 s log a warning that says for whom. What a builder that was killed left behind is
    removed.

    Args:
        directory: Final place; either absent or complete at any time, also after a crash.
        build: Fills the empty directory that it is given, on the same file system.
        stop: Ends a wait when another thread sets it; None if none will.

    Raises:
        ExecutionError: The cache cannot be written, such as on a full disk (nothing half-built is left behind), or
            another process has been building for 45 minutes, or the wait was stopped.
    """
    try:
        if not directory.is_dir():
            directory.parent.mkdir(parents=True, exist_ok=True)
            with _lock(directory, stop or threading.Event()):
                if not directory.is_dir():
                    _build(directory, build)
    except OSError as error:
        message = f"cannot write the cache {directory.parent}: {error}; free space there or set PINSTRIPE_CACHE"
        raise ExecutionError(message) from error
    return directory


def load_once_built(
    directory: Path, build: Callable[[Path], None], load: Callable[[Path], T], damage: type[Exception]
) -> T:
    """Return what `load` makes of a directory, building that first if it does not exist, and anew if it is damaged.

    Args:
        directory: See `build_once`.
        build: See `build_once`.
        load: Reads the directory that it is given.
        damage: Raised by `load` where it cannot read what is there; the second time it is passed on.

    Raises:
        ExecutionError: See `build_once`; or what is damaged cannot be replaced.
    """
    seen = _identity(build_once(directory, build))
    try:
        return load(directory)
    except damage as error:
        logging.getLogger(__name__).warning("%s is damaged and is made anew: %s", directory, error)
    try:
        with _lock(directory, threading.Event()):
            if _identity(directory) == seen:  # else another process has replaced it meanwhile
                shutil.rmtree(directory)
    except OSError as error:
        message = f"{directory} is damaged and cannot be replaced ({error})"
        raise ExecutionError(f"{message}; delete it, or set PINSTRIPE_CACHE to another place") from error
    return load(build_once(directory, build))


def _identity(directory: Path) -> tuple[int, int] | None:
    """Return what tells a directory from another one of its name; numbers of inodes are used again soon."""
    try:
        found = directory.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _build(directory: Path, build: Callable[[Path], None]) -> None:
    """Build under another name, which nobody else uses: what a killed builder had started may still be running."""
    prefix = f".{directory.name}.unfinished-"
    for other in directory.parent.iterdir():
        if re.fullmatch(re.escape(prefix) + "[0-9a-f]{8}", other.name):
            shutil.rmtree(other, ignore_errors=True)
    unfinished = directory.parent / f"{prefix}{secrets.token_hex(4)}"
    unfinished.mkdir()
    try:
        build(unfinished)
        unfinished.rename(directory)
    except Exception as error:
        if shutil.disk_usage(unfinished).free < _FULL_BYTES:  # which libraries tell in words of their own
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _lock(directory: Path, stop: threading.Event) -> Iterator[None]:
    """Hold the lock on building a directory; the kernel takes it back from a process that ends."""
    path = directory.with_name(f".{directory.name}.lock")
    with path.open("a+") as file:  # which keeps the holder's name
        began_s, said = time.monotonic(), False
        while not _locked(file):
            waited_s = time.monotonic() - began_s
            if waited_s > _WAIT_LIMIT_S:
                message = f"{_holder(path)} has been making {directory} for {_WAIT_LIMIT_S / 60:.0f} minutes"
                raise ExecutionError(f"{message}; stop it, or set PINSTRIPE_CACHE to another place")
            if waited_s > _SILENT_S and not said:
                logging.getLogger(__name__).warning("waiting for %s, which makes %s", _holder(path), directory)
                said = True
            if stop.wait(_POLL_S):
                raise ExecutionError(f"the wait for {_holder(path)}, which makes {directory}, was stopped")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno != errno.EWOULDBLOCK:
            raise
        return False
    return True


def _holder(path: Path) -> str:
    return path.read_text() or "another process"
