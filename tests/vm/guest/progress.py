"""How far a case has come, for when it comes no further."""

import sys
import time
from pathlib import Path

__all__ = ["tell"]

_SILENT = Path("/run/silent")
"""What `init.sh` makes again and again; if it is still there the next time, the case counts as hung."""


def tell(step: str) -> None:
    """Write a line with the time since the guest was started."""
    _SILENT.unlink(missing_ok=True)
    sys.stdout.write(f"{time.clock_gettime(time.CLOCK_BOOTTIME):6.1f} s  {step}\n")
    sys.stdout.flush()  # also so that a process forked from here has nothing left to write again
