"""Page faults of a process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

__all__ = ["PageFaults", "read_page_faults"]


@dataclass(frozen=True, slots=True)
class PageFaults:
    """Counts since a process was started, of all its threads.

    Attributes:
        minor: Those that needed no disk: a page was got from the kernel, or one in its cache was mapped.
        major: Those that waited for the disk.
    """

    minor: int
    major: int

    def __add__(self, other: Self) -> "PageFaults":
        """Add up those of two processes."""
        return PageFaults(self.minor + other.minor, self.major + other.major)

    def __sub__(self, earlier: Self) -> "PageFaults":
        """Return those since an earlier count."""
        return PageFaults(self.minor - earlier.minor, self.major - earlier.major)


def read_page_faults(pid: int, root: Path = Path("/")) -> PageFaults | None:
    """Return the page faults of a process, from `/proc/PID/stat`: proc_pid_stat(5), fields 10 (minflt) and 12 (majflt).

    Args:
        pid: The process.
        root: Directory in whose `proc` to read.

    Returns:
        None if the process is gone, or where the kernel does not count: no process starts without a minor fault, so
        that 0 means that (sandboxes that imitate a kernel).
    """
    try:
        # The second field is the program's name in parentheses, and may hold anything.
        fields = (root / "proc" / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        minor, major = int(fields[7]), int(fields[9])
    except (OSError, ValueError, IndexError):
        return None
    return PageFaults(minor, major) if minor else None
