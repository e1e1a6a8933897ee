"""A file of the raw times of runs."""

from pathlib import Path
from typing import IO, Self

import msgspec

from pinstripe.configuration import Arrivals
from pinstripe.errors import OutputError, UsageError
from pinstripe.load import LoadRun

__all__ = ["RawTimes"]


class RawTimes:
    """JSON lines: for each run one that describes it, and one for each request. A context manager; empty, it goes."""

    def __init__(self, path: Path | None) -> None:
        """Make the file, before anything is measured.

        Args:
            path: None for no file.

        Raises:
            UsageError: It exists.
            OutputError: It cannot be made.
        """
        self._path = path
        self._runs = 0
        self._file: IO[bytes] | None = None
        if path is None:
            return
        try:
            self._file = path.open("xb")
        except FileExistsError as error:
            raise UsageError(f"{path} exists; name another file") from error
        except OSError as error:
            raise OutputError(f"cannot make {path}: {error.strerror}; name another file") from error

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file; if it has no run, remove it."""
        if self._file is not None and self._path is not None:
            self._file.close()
            if not self._runs:
                self._path.unlink()

    def add(self, run: LoadRun, arrivals: Arrivals) -> None:
        """Write a run.

        Args:
            run: What was measured.
            arrivals: When its requests arrived.

        Raises:
            OutputError: It cannot be written.
        """
        if self._file is None:
            return
        self._runs += 1
        about = {
            "run": self._runs,
            "arrivals": arrivals,
            "requests": len(run.sent_ns),
            "planned": run.planned,
            "clients": run.clients,
            "most_in_flight": run.most_in_flight,
            "elapsed_ns": run.elapsed_ns,
            "cpu_ns": run.cpu_ns,
            "end": run.end,
        }
        times = zip(run.scheduled_ns, run.sent_ns, run.done_ns, strict=True)
        encode = msgspec.json.Encoder().encode
        try:
            self._file.write(encode(about) + b"\n")
            for number, (scheduled, sent, done) in enumerate(times):
                line = {
                    "run": self._runs,
                    "number": number,
                    "scheduled_ns": scheduled,
                    "sent_ns": sent,
                    "done_ns": done,
                    "failure": run.failures.get(number),
                }
                self._file.write(encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            raise OutputError(
                f"cannot write {self._path}: {error.strerror}; make room, or name another file"
            ) from error
