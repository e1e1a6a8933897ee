"""What a trial leaves: everything needed to trust, compare and repeat it."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from pinstripe.bench.measurement import Measurement
from pinstripe.bench.scenarios import Limits
from pinstripe.bench.watch import Surroundings
from pinstripe.configuration import Configuration, Workload
from pinstripe.engines import Artefact
from pinstripe.errors import RecordError, UsageError
from pinstripe.machine import Machine
from pinstripe.models import Network
from pinstripe.peak import Peak
from pinstripe.placement import Placement
from pinstripe.pool import InstanceEvidence

__all__ = ["FORMAT", "Failure", "Host", "Record", "RecordFile", "read_records", "trial_key"]

FORMAT: Final = 1
"""History: 1, the first."""


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Software that a measurement depends on.

    Attributes:
        kernel: Release of the operating system's kernel.
        python: Version of the interpreter.
        libraries: Versions of the distributions that take part, by name.
    """

    kernel: str
    python: str
    libraries: dict[str, str]


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a trial gave no measurement: it is infeasible on this machine, which is a result too."""

    message: str


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One configuration under one workload, measured once in fresh processes.

    Attributes:
        format: Version of this format.
        pinstripe: Version that wrote it.
        run: Identifies the command that measured it; its trials were interleaved and may be compared in pairs.
        repeat: Which repeat of the trial, from 0.
        created: When, in UTC, ISO 8601.
        host: Software.
        machine: What the host offered.
        network: The model.
        artefact: The file that the engine loaded.
        configuration: How it ran.
        placement: Where; None for unpinned instances.
        workload: What was asked of it.
        limits: How long it was to be measured.
        measurement: What came of it; None if it failed.
        failure: Why it failed; None if it did not.
        parent_cpus: CPUs that the parent ran on meanwhile: those that no instance has, if there are any; None for all
            that it may use.
        surroundings: What went on around it, disturbances included; None if it failed.
        sample_flops: Floating-point operations of a text's matrix products, padding not counted, the mean of all
            texts; None if it failed, or where they cannot be counted.
        peak: What the instances' cores gave for large matrix products just before; None if that was not asked for.
        evidence: What took effect, one entry an instance; empty if it failed before.
    """

    format: int = FORMAT
    pinstripe: str
    run: str
    repeat: int
    created: str
    host: Host
    machine: Machine
    network: Network
    artefact: Artefact
    configuration: Configuration
    placement: Placement | None
    workload: Workload
    limits: Limits
    measurement: Measurement | None = None
    failure: Failure | None = None
    parent_cpus: tuple[int, ...] | None = None
    surroundings: Surroundings | None = None
    sample_flops: float | None = None
    peak: Peak | None = None
    evidence: tuple[InstanceEvidence, ...] = ()


def trial_key(configuration: Configuration, workload: Workload) -> bytes:
    """Return what tells one trial from another; equal in all its repeats, also when a file was renamed."""
    texts = workload.texts and replace(workload.texts, file="")
    arrivals = workload.arrivals
    if arrivals and arrivals.trace:
        arrivals = replace(arrivals, trace=replace(arrivals.trace, file=""))
    return msgspec.json.encode((configuration, replace(workload, texts=texts, arrivals=arrivals)))


class RecordFile:
    """A file of records that grows line by line; what is in it stays whole whatever happens."""

    def __init__(self, path: Path, *, drop_cut: bool = False) -> None:
        """Open or create a file for appending; nobody else can meanwhile.

        Args:
            path: The file.
            drop_cut: Whether a last line that was cut off, such as by `kill -9`, is removed and counted in
                `dropped_bytes`; otherwise it is an error.

        Raises:
            RecordError: It cannot be opened, another process appends to it, or its last line was cut off.
        """
        self.path = path
        self.dropped_bytes = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RecordError(f"cannot write records to {path}: {error.strerror}; name another file") from error
        try:
            self._take(drop_cut=drop_cut)
        except BaseException:
            os.close(self._file)
            raise

    def _take(self, *, drop_cut: bool) -> None:
        """Lock the file, and see that it ends with a whole line."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._size = os.fstat(self._file).st_size
            whole = self._size == 0 or os.pread(self._file, 1, self._size - 1) == b"\n"
        except BlockingIOError as error:
            raise RecordError(f"another run is writing to {self.path}; wait for it, or name another file") from error
        except OSError as error:
            raise RecordError(f"cannot write records to {self.path}: {error.strerror}; name another file") from error
        if not whole and not drop_cut:
            raise RecordError(
                f"the last line of {self.path} is cut off; delete it, go on with --resume {self.path}, "
                "or name another file"
            )
        if not whole:
            self._drop_cut_line()

    def _drop_cut_line(self) -> None:
        whole = self.path.read_bytes().rfind(b"\n") + 1
        self.dropped_bytes = self._size - whole
        os.ftruncate(self._file, whole)
        self._size = whole

    def append(self, record: Record) -> None:
        """Add a record, wholly or not at all, and make it durable.

        Raises:
            RecordError: It could not be written, such as on a full disk; the file is as it was.
        """
        line = msgspec.json.encode(record) + b"\n"
        try:
            written = 0
            while written < len(line):
                written += os.pwrite(self._file, line[written:], self._size + written)
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):  # a device cannot be cut
                os.ftruncate(self._file, self._size)
            raise RecordError(
                f"cannot write a record to {self.path}: {error.strerror}; the records before it are kept"
            ) from error
        self._size += len(line)

    def close(self) -> None:
        """Close the file; one without any record is removed."""
        if self._size == 0 and self.path.is_file():
            self.path.unlink()
        os.close(self._file)


def read_records(path: Path) -> list[Record]:
    """Return the records of a file.

    Raises:
        RecordError: The file cannot be read, or a line is not a record; the message names the line.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from error
    if lines == [b""]:
        raise RecordError(f"{path} holds no record; was the run ended before its first measurement?")
    if lines[-1]:
        raise RecordError(f"line {len(lines)} of {path} is cut off; delete it to read the {len(lines) - 1} before it")
    return [_parse(line, number, path) for number, line in enumerate(lines[:-1], 1)]


class _Version(msgspec.Struct):
    format: int


def _parse(line: bytes, number: int, path: Path) -> Record:
    try:
        version = msgspec.json.decode(line, type=_Version).format
        if version != FORMAT:
            raise RecordError(
                f"line {number} of {path} has format {version}; this pinstripe reads {FORMAT}: use a newer one"
            )
        return msgspec.json.decode(line, type=Record)
    except (msgspec.DecodeError, UsageError) as error:
        raise RecordError(f"line {number} of {path} is not a record: {error}") from error
