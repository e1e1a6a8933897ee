"""Writes a model's graph, or quantizes one; `python -m pinstripe.engines.exporting` is started by `prepare`.

Its arguments are the number of a pipe from the parent, and a directory with a `Request` in it. When the pipe closes,
the parent is gone, and so is this process.
"""

import errno
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from pinstripe.engines.exporting.making import export, quantize
from pinstripe.engines.exporting.request import MESSAGE, REQUEST_FILE, USAGE_EXIT, WRITE_EXIT, ExportRequest, Request
from pinstripe.engines.importing import one_line
from pinstripe.errors import PinstripeError, UsageError

__all__ = ["main"]


_WRITING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})


def _exit_with_parent(pipe: int) -> None:
    os.read(pipe, 1)
    os._exit(1)


def main(arguments: Sequence[str]) -> int:
    """Make the graph in the directory that is named; return 0, 1 for a failure, or a code of `request.py`."""
    threading.Thread(target=_exit_with_parent, args=(int(arguments[0]),), daemon=True).start()
    directory = Path(arguments[1])
    try:
        request: Request = msgspec.json.decode((directory / REQUEST_FILE).read_bytes(), type=Request)
        if isinstance(request, ExportRequest):
            export(request, directory)
        else:
            quantize(request, directory)
    except PinstripeError as error:
        return _failed(one_line(error), USAGE_EXIT if isinstance(error, UsageError) else 1)
    except OSError as error:
        if error.errno in _WRITING and error.strerror:
            return _failed(error.strerror, WRITE_EXIT)
        return _failed(one_line(error), 1)
    return 0


def _failed(message: str, code: int) -> int:
    sys.stderr.write(f"\n{MESSAGE}{message}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
