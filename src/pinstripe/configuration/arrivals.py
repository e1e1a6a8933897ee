"""When requests arrive."""

from pathlib import PurePath
from typing import Literal

import msgspec

from pinstripe.errors import ConfigurationError

__all__ = ["Arrivals", "Process", "Trace"]

Process = Literal["poisson", "constant", "trace", "closed"]
_MOST_PER_S = 1e6
_MOST_CLIENTS = 100_000
_MOST_TEXTS = 4096
_HOUR_MS = 3_600_000


class Trace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of times at which requests arrived.

    Attributes:
        file: Its name, as the user named it.
        sha256: Digest of its content, in hexadecimal.
        requests: Number of times in it, at least 1.
    """

    file: str
    sha256: str
    requests: int


class Arrivals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When requests arrive.

    Attributes:
        process: `poisson` and `constant` at a rate, `trace` at the times of a file: open loops, whose requests arrive
            whether or not those before are answered. `closed`: a fixed number of clients, each of which sends its next
            request when the one before is answered.
        rate_per_s: Requests a second, above 0 to 10^6; with `trace` None for the trace's own, else it is stretched.
        seed: Of the random times of `poisson`.
        trace: The times; with `trace` only.
        clients: Number of clients, 1 to 100,000; with `closed` only.
        p99_ms: In place of a rate: the rate is the highest at which the 99th percentile of the latency is at most this,
            above 0 to an hour. With `poisson` and `constant` only.
        texts: Texts in each request, 1 to 4096.
    """

    process: Process = "poisson"
    rate_per_s: float | None = None
    seed: int = 0
    trace: Trace | None = None
    clients: int | None = None
    p99_ms: float | None = None
    texts: int = 1

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigurationError: A number is missing or out of range, or the fields contradict each other.
        """
        at_a_rate = self.process in {"poisson", "constant"}
        if at_a_rate and self.rate_per_s is None and self.p99_ms is None:
            raise ConfigurationError(f"{self.process} arrivals need a rate; name the requests a second")
        if self.p99_ms is not None and (self.rate_per_s is not None or not at_a_rate):
            raise ConfigurationError(
                "a bound of the p99 is there to find the rate of poisson or constant arrivals; leave it or the rate out"
            )
        if self.p99_ms is not None and not 0 < self.p99_ms <= _HOUR_MS:
            raise ConfigurationError(f"a p99 of {self.p99_ms:g} ms is out of range; use above 0 to {_HOUR_MS:,}")
        if self.rate_per_s is not None and not 0 < self.rate_per_s <= _MOST_PER_S:
            raise ConfigurationError(
                f"a rate of {self.rate_per_s:g} requests a second is out of range; use above 0 to {_MOST_PER_S:,.0f}"
            )
        if (self.process == "trace") != (self.trace is not None):
            raise ConfigurationError(
                "a file of times goes with trace arrivals, and they with one; name both, or neither"
            )
        if (self.process == "closed") != (self.clients is not None):
            raise ConfigurationError(
                "a number of clients goes with a closed loop, and it with one; name both, or neither"
            )
        if self.process == "closed" and self.rate_per_s is not None:
            raise ConfigurationError("in a closed loop the answers set the rate; leave the rate out")
        if self.clients is not None and not 1 <= self.clients <= _MOST_CLIENTS:
            raise ConfigurationError(f"{self.clients} clients are out of range; use 1 to {_MOST_CLIENTS:,}")
        if not 1 <= self.texts <= _MOST_TEXTS:
            raise ConfigurationError(f"{self.texts} texts a request are out of range; use 1 to {_MOST_TEXTS:,}")

    @property
    def label(self) -> str:
        """A short name, such as `poisson 100/s` or `trace monday.txt 100/s of 4 texts`."""
        parts = (
            self.process,
            self.trace and PurePath(self.trace.file).name,
            self.clients and ("1 client" if self.clients == 1 else f"{self.clients} clients"),
            self.rate_per_s and f"{_exactly(self.rate_per_s)}/s",
            self.p99_ms and f"p99 ≤ {_exactly(self.p99_ms)} ms",
            self.seed and f"seed {self.seed}",
            f"of {self.texts} texts" if self.texts > 1 else None,
        )
        return " ".join(str(part) for part in parts if part)


def _exactly(number: float) -> str:
    """Return all digits of a number, so that different ones have different names."""
    return repr(number).removesuffix(".0")
