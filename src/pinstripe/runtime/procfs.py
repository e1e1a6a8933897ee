"""Reading `/proc/PID/status`."""

from pathlib import Path

__all__ = ["read_status"]


def read_status(path: Path) -> dict[str, str]:
    """Return a `status` file of procfs as values by name.

    Args:
        path: The file, of a process or of one of its threads.

    Raises:
        OSError: It cannot be read; the process may be gone.
    """
    lines = path.read_text(errors="replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
