"""Writes a model's graph, or quantizes one; `python -m pinstripe.engines.exporting` is started by `prepare`.

Its argument is a directory with a `Request` in it. Its standard input is a pipe from the parent: when that closes, the
parent is gone, and so is this process.
"""

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pinstripe.engines.exporting.making import export, quantize
from pinstripe.engines.exporting.request import REQUEST_FILE, USAGE_EXIT, ExportRequest, Request
from pinstripe.engines.importing import one_line
from pinstripe.errors import PinstripeError, UsageError

__all__ = ["main"]


def _exit_with_parent() -> None:
    # Not through sys.stdin: a thread that waits in it makes Python abort at exit.
    while os.read(0, 1):
        pass
    os._exit(1)


def main(arguments: Sequence[str]) -> int:
    """Make the graph in the directory that is named; return 0, 2 for what the user can change, 1 for other failures."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    directory = Path(arguments[0])
    try:
        request: Request = msgspec.json.decode((directory / REQUEST_FILE).read_bytes(), type=Request)
        if isinstance(request, ExportRequest):
            export(request, directory)
        else:
            quantize(request, directory)
    except (PinstripeError, OSError) as error:
        sys.stderr.write(f"{one_line(error)}\n")
        return USAGE_EXIT if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
