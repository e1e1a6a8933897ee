"""The directory for things that are costly to make: exported models, random weights. Safe under concurrent starts."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from pinstripe.errors import ExecutionError

__all__ = ["build_once", "cache_directory"]


def cache_directory() -> Path:
    """Return `$PINSTRIPE_CACHE`, else `$XDG_CACHE_HOME/pinstripe`, else `~/.cache/pinstripe` (not created)."""
    if named := os.environ.get("PINSTRIPE_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pinstripe"


def build_once(directory: Path, build: Callable[[Path], None]) -> Path:
    """Return `directory`, building it first if it does not exist; only one of several concurrent callers builds.

    Args:
        directory: Final place; either absent or complete at any time, also after a crash.
        build: Fills the empty directory that it is given, on the same file system.

    Raises:
        ExecutionError: The cache cannot be written, such as on a full disk; nothing half-built is left behind.
    """
    if directory.is_dir():
        return directory
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with (directory.parent / f".{directory.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if directory.is_dir():
                return directory
            unfinished = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
            try:
                build(unfinished)
                unfinished.rename(directory)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as error:
        message = f"cannot write the cache {directory.parent}: {error}; free space there or set PINSTRIPE_CACHE"
        raise ExecutionError(message) from error
    return directory
