"""A process of a probe. Started as `PYTHON -m pinstripe.peak.probe FD NAME PRECISION THREADS`."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Final, cast

import msgspec

from pinstripe.peak.description import PeakPrecision
from pinstripe.peak.kernels import KERNELS, Product
from pinstripe.peak.messages import FromProbe, Prepare, Prepared, ProbeFailed, Ran, Ready, Run, ToProbe

__all__ = ["main"]

_WARM_UP_CALLS: Final = 2


def _answers(lines: IO[bytes], name: str, precision: PeakPrecision, threads: int | None) -> Iterator[FromProbe]:
    kernel = KERNELS[name](precision, threads)
    yield Ready()
    product: Product | None = None
    for line in lines:
        match msgspec.json.decode(line, type=ToProbe):
            case Prepare(m=m, n=n, k=k):
                product = kernel(m, n, k)
                for _ in range(_WARM_UP_CALLS):
                    product()
                yield Prepared(call_ns=_run(product, 0).elapsed_ns)
            case Run(duration_ns=duration_ns) if product is not None:
                yield _run(product, duration_ns)


def _run(product: Product, duration_ns: int) -> Ran:
    """Multiply until the time is over, at least once."""
    began_ns = time.perf_counter_ns()
    calls = 0
    while True:
        product()
        calls += 1
        elapsed_ns = time.perf_counter_ns() - began_ns
        if elapsed_ns >= duration_ns:
            return Ran(calls=calls, elapsed_ns=elapsed_ns)


def main() -> None:
    """Serve the socket whose file descriptor is the first argument, until the parent closes it."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    threads = None if sys.argv[4] == "none" else int(sys.argv[4])
    with suppress(BrokenPipeError, ConnectionResetError), connection.makefile("rb") as lines:  # the parent is gone
        try:
            for answer in _answers(lines, sys.argv[2], cast("PeakPrecision", sys.argv[3]), threads):
                connection.sendall(msgspec.json.encode(answer) + b"\n")
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a library raises, the parent has to hear of it
            reason = " ".join(str(error).split()) or type(error).__name__
            connection.sendall(msgspec.json.encode(ProbeFailed(reason=reason)) + b"\n")
    # Frameworks' thread pools and destructors can hang or crash at interpreter exit; nothing is left to save.
    os._exit(0)


if __name__ == "__main__":
    main()
