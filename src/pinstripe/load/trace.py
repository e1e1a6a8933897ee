"""Files of times at which requests arrived."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.configuration import Trace
from pinstripe.errors import ConfigurationError

__all__ = ["read_trace"]

_MOST_BYTES: Final = 1 << 30
_MOST_SHOWN: Final = 40
_MOST_S: Final = 9e9
"""What 64 bits of nanoseconds hold; NaN is not below it either."""


def read_trace(path: Path) -> tuple[NDArray[np.int64], Trace]:
    """Return the times of a trace, from its first one on.

    Each line holds a time: seconds as a number, from any origin; ISO 8601, in UTC unless it says otherwise; or a JSON
    object whose field `time` is one of these; all in one way, as seconds have no date. Empty lines are passed over.

    Returns:
        Offsets in nanoseconds [requests], the first 0, not descending; and what describes the file.

    Raises:
        ConfigurationError: It cannot be read, is larger than 1 GiB, holds no times, or a line is bad; the message names
            the line.
    """
    try:
        if path.exists() and not path.is_file():
            raise ConfigurationError(f"{path} is no regular file; write its times into one")
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigurationError(f"{path} is larger than {_MOST_BYTES >> 30} GiB; take a part of it")
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}; check its name and permissions") from error
    times: list[int] = []
    first: tuple[int, str] | None = None
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            time_ns, way = _time_ns(line.strip())
        except ValueError as error:
            raise ConfigurationError(f"line {number} of {path} is no time: {error}") from error
        first = first or (number, way)
        if way != first[1]:
            raise ConfigurationError(
                f"line {number} of {path} is {way}, line {first[0]} is {first[1]}; write all in one way"
            )
        if times and time_ns < times[-1]:
            back_s = (times[-1] - time_ns) / 1e9
            raise ConfigurationError(
                f"line {number} of {path} is {back_s:g} s before the one above it; sort the times, the earliest first"
            )
        times.append(time_ns)
    if not times:
        raise ConfigurationError(f"{path} holds no times; write one on each line")
    offsets = np.array([time - times[0] for time in times], dtype=np.int64)
    return offsets, Trace(file=str(path), sha256=hashlib.sha256(content).hexdigest(), requests=len(times))


def _time_ns(line: bytes) -> tuple[int, str]:
    """Return the time that a line holds, in nanoseconds from some origin, and how it is written.

    Raises:
        ValueError: It holds none.
    """
    value: Any = line.decode(errors="replace")
    if line.startswith(b"{"):
        try:
            value = msgspec.json.decode(line)["time"]
        except msgspec.DecodeError as error:
            raise ValueError("its JSON is not valid") from error
        except KeyError as error:
            raise ValueError("its JSON object has no field time") from error
    shown = str(value)[:_MOST_SHOWN]
    if isinstance(value, str):
        value = _parsed(value, shown)
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000, "a date"
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST_S:
        return round(value * 1e9), "seconds"
    raise ValueError(f"{shown!r} is neither seconds nor ISO 8601")


def _parsed(text: str, shown: str) -> float | datetime:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{shown!r} is neither seconds nor ISO 8601") from error
