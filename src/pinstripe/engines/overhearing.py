"""What a library says to standard output while it is called: some say there alone which kernels they choose."""

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable

__all__ = ["overheard"]

_OUTPUT = 1


def overheard(call: Callable[[], object]) -> list[str]:
    """Make a call, and return the lines that were written to file descriptor 1 meanwhile, which get no further.

    To be used before other threads have anything to say.
    """
    c_library = ctypes.CDLL(None)
    sys.stdout.flush()
    c_library.fflush(None)
    kept = os.dup(_OUTPUT)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), _OUTPUT)
        try:
            call()
        finally:
            c_library.fflush(None)
            os.dup2(kept, _OUTPUT)
            os.close(kept)
        said.seek(0)
        return said.read().decode(errors="replace").splitlines()
