"""The process that holds one instance. Started as `PYTHON -m pinstripe.pool.worker FD`.

It needs msgspec, numpy and its engine, and may run in another Python environment than the parent.
"""

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.engines import EngineReport, LoadedModel, engine
from pinstripe.errors import PinstripeError, UsageError
from pinstripe.models import Head, Network, TokenBatch, check_batch, make_head
from pinstripe.pool.frames import FrameReader, array_headers, encode_frame
from pinstripe.pool.messages import (
    PROTOCOL_VERSION,
    BatchDone,
    BatchFailed,
    FromWorker,
    LoadFailed,
    Ready,
    Report,
    ReportRequest,
    RunBatch,
    StartWorker,
    ToWorker,
)
from pinstripe.runtime import binds_openmp_threads, observe_process, openmp_team, rebind_threads

__all__ = ["main"]

_READ_BYTES: Final = 1 << 20


class _Channel:
    """The worker's end of the socket; blocking, since a worker does one thing at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader: FrameReader[ToWorker] = FrameReader(ToWorker)
        self._buffer = memoryview(bytearray(_READ_BYTES))

    def receive(self) -> Iterator[tuple[ToWorker, dict[str, NDArray[Any]]]]:
        """Yield messages until the parent closes its end."""
        while count := self._connection.recv_into(self._buffer):
            yield from self._reader.feed(self._buffer[:count])

    def send(self, message: FromWorker, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        buffers = encode_frame(message, arrays)
        sent = self._connection.sendmsg(buffers)
        if sent < sum(map(len, buffers)):
            self._connection.sendall(b"".join(buffers)[sent:])


class _Worker:
    """One loaded model and what turns its output into results."""

    def __init__(self, start: StartWorker) -> None:
        self._cpus = start.cpus
        self._openmp = engine(start.engine).threading == "openmp"
        self._network = start.load.network
        self._head: Head | None = make_head(start.load.network) if start.output == "task" else None
        began_ns = time.monotonic_ns()
        self._model: LoadedModel = engine(start.engine).load(start.load)
        self.load_ns = time.monotonic_ns() - began_ns
        began_ns = time.monotonic_ns()
        self._model.forward(_probe_batch(start.load.network))
        self.first_forward_ns = time.monotonic_ns() - began_ns
        self._rebound_threads = self._rebind()

    def _rebind(self) -> int:
        """Put threads back that a library has moved off the instance's CPUs, or squeezed together on one of them."""
        if not self._cpus:
            return 0
        bound = openmp_team() if self._openmp and binds_openmp_threads() else ()
        return rebind_threads(self._cpus, {thread.tid for thread in bound})

    def run(self, batch: TokenBatch) -> tuple[dict[str, NDArray[Any]], int]:
        """Return results by name, and the nanoseconds of the forward pass."""
        check_batch(batch, self._network)
        began_ns = time.monotonic_ns()
        output = self._model.forward(batch)
        engine_ns = time.monotonic_ns() - began_ns
        return ({"output": output} if self._head is None else self._head(output, batch)), engine_ns

    def report(self) -> Report:
        """Return what is in effect."""
        self._rebound_threads += self._rebind()
        report: EngineReport = self._model.report()
        return Report(
            engine=report,
            thread_pools=_thread_pools(),
            rebound_threads=self._rebound_threads,
            observation=observe_process(openmp=self._openmp),
        )


def _probe_batch(network: Network) -> TokenBatch:
    length = min(8, network.positions)
    not_padding = (network.pad_token_id + 1) % network.vocab_size
    return TokenBatch(ids=np.full((1, length), not_padding, np.int32), lengths=np.full(1, length, np.int32))


def _thread_pools() -> dict[str, int]:
    try:
        from threadpoolctl import threadpool_info  # noqa: PLC0415 - optional on the worker's side
    except ImportError:
        return {}
    return {str(pool["filepath"]): int(pool["num_threads"]) for pool in threadpool_info()}


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, PinstripeError) else f"{type(error).__name__}: {text}"


def _serve(channel: _Channel) -> None:
    worker: _Worker | None = None
    for message, arrays in channel.receive():
        match message:
            case StartWorker():
                worker = _start(message, channel)
            case RunBatch(id=batch_id) if worker is not None:
                _run(worker, batch_id, TokenBatch(**arrays), channel)
            case ReportRequest() if worker is not None:
                channel.send(worker.report())


def _start(start: StartWorker, channel: _Channel) -> _Worker | None:
    if start.protocol_version != PROTOCOL_VERSION:
        reason = f"the worker speaks protocol {PROTOCOL_VERSION}, the parent {start.protocol_version}"
        channel.send(LoadFailed(usage=True, message=f"{reason}; install one pinstripe version in both environments"))
        return None
    try:
        worker = _Worker(start)
    except Exception as error:  # noqa: BLE001 - whatever a library raises, the parent has to hear of it
        channel.send(LoadFailed(usage=isinstance(error, UsageError), message=_one_line(error)))
        return None
    channel.send(
        Ready(
            protocol_version=PROTOCOL_VERSION,
            load_ns=worker.load_ns,
            first_forward_ns=worker.first_forward_ns,
        )
    )
    return worker


def _run(worker: _Worker, batch_id: int, batch: TokenBatch, channel: _Channel) -> None:
    started_ns = time.monotonic_ns()
    try:
        results, engine_ns = worker.run(batch)
    except Exception as error:  # noqa: BLE001 - a batch that fails costs itself only
        channel.send(BatchFailed(id=batch_id, message=_one_line(error)))
        return
    done = BatchDone(
        id=batch_id,
        started_ns=started_ns,
        engine_ns=engine_ns,
        finished_ns=time.monotonic_ns(),
        arrays=array_headers(results),
    )
    channel.send(done, results)


def main() -> None:
    """Serve the socket whose file descriptor is the only argument, until the parent closes it."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    with suppress(BrokenPipeError, ConnectionResetError):  # the parent is gone, and with it the need for an answer
        _serve(_Channel(connection))
    # Frameworks' thread pools and destructors can hang or crash at interpreter exit; nothing is left to save.
    os._exit(0)


if __name__ == "__main__":
    main()
