"""A module of pinstripe, run by a Python interpreter that may be another environment's."""

import tempfile
import threading
import time
from dataclasses import dataclass
from typing import IO, Final

from pinstripe.engines.other_python import check_python
from pinstripe.errors import ExecutionError
from pinstripe.runtime import Process, StartRequest, start

__all__ = ["Finished", "run_module"]

_OUTPUT_BYTES: Final = 1 << 20
"""Far more than is ever said on purpose."""
_ERRORS_BYTES: Final = 16 << 10
_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Finished:
    """How a process ended.

    Attributes:
        code: Its exit status, minus the signal's number if one killed it.
        output: What it wrote to standard output.
        errors: The last 16 KiB of what it wrote to standard error.
    """

    code: int
    output: bytes
    errors: str


def run_module(
    python: str,
    module: str,
    *arguments: str,
    limit_s: float,
    stop: threading.Event | None = None,
    pass_fds: tuple[int, ...] = (),
) -> Finished:
    """Run a module until it ends; whatever it started is gone then, too.

    Args:
        python: Interpreter.
        module: Name of the module.
        arguments: Its arguments.
        limit_s: Longest time it may take, in seconds.
        stop: Ends it early when set; None if nobody will.
        pass_fds: File descriptors that it inherits.

    Raises:
        EngineError: There is no such interpreter.
        ExecutionError: It could not be started, did not end in time, wrote more than 1 MiB to its standard output, or
            was stopped.
    """
    check_python(python)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = start(
            StartRequest(
                # Warnings of libraries concern their authors, and PYTHONWARNINGS=error would make them fatal.
                argv=(python, "-P", "-W", "ignore", "-m", module, *arguments),
                memory_policy="none",
                # Transformers reads its own docstrings, which PYTHONOPTIMIZE=2 takes away.
                environment={"PYTHONOPTIMIZE": None},
                pass_fds=pass_fds,
                output=output.fileno(),
                errors=errors.fileno(),
            )
        )
        try:
            code = _wait(process, output, limit_s, stop or threading.Event())
        finally:
            process.stop(0.0)
        return Finished(code, _tail(output, _OUTPUT_BYTES), _tail(errors, _ERRORS_BYTES).decode(errors="replace"))


def _wait(process: Process, output: IO[bytes], limit_s: float, stop: threading.Event) -> int:
    deadline = time.monotonic() + limit_s
    while (code := process.wait(_POLL_S)) is None:
        if stop.is_set():
            raise ExecutionError("it was stopped")
        if time.monotonic() > deadline:
            duration = f"{limit_s / 60:.0f} minutes" if limit_s > 60 else f"{limit_s:g} s"  # noqa: PLR2004 - a minute
            raise ExecutionError(f"not done after {duration}")
        if output.seek(0, 2) > _OUTPUT_BYTES:
            raise ExecutionError(f"it wrote more than {_OUTPUT_BYTES >> 20} MiB, and was stopped")
    return code


def _tail(file: IO[bytes], most: int) -> bytes:
    file.seek(max(0, file.seek(0, 2) - most))
    return file.read()
