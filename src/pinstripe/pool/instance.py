"""The parent's side of one worker: its process, its socket and the batches it has."""

import asyncio
import itertools
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Self, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.engines import engine
from pinstripe.engines.last_words import last_words
from pinstripe.engines.other_python import explain_end
from pinstripe.errors import EngineError, StartError, WorkerDiedError, WorkerError, WorkerHungError
from pinstripe.models import TokenBatch
from pinstripe.pool.executor import BatchResult, BatchTiming
from pinstripe.pool.frames import FrameReader, array_headers, encode_frame
from pinstripe.pool.job import Job
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
)
from pinstripe.pool.patience import Patience
from pinstripe.pool.spec import WorkerSpec, start_worker
from pinstripe.runtime import Process

__all__ = ["Instance"]

_PREFETCH_BELOW_S: Final = 0.05
"""A worker holds a second batch while it runs one if that is expected to take less than this; the gain (one round
trip) is then a noticeable part, and a batch that waits behind another is not held up for long."""
_SOCKET_BUFFER_BYTES: Final = 1 << 20
_GRACE_S: Final = 2.0
_REPORT_S: Final = 10.0


class Instance(asyncio.Protocol):
    """One worker process, from start to end. A restarted instance is a new object."""

    _transport: asyncio.Transport  # from `connection_made` on, which comes before anything else

    def __init__(
        self,
        index: int,
        spec: WorkerSpec,
        process: Process,
        on_room: Callable[["Instance"], None],
        on_death: Callable[["Instance", WorkerError, deque[Job]], None],
    ) -> None:
        """Use `open`."""
        self.index = index
        self.spec = spec
        self.process = process
        self.load_ns = 0
        self.first_forward_ns = 0
        self.batches_done = 0
        self.jobs: deque[Job] = deque()
        self._on_room = on_room
        self._on_death = on_death
        self._reader: FrameReader[FromWorker] = FrameReader(FromWorker)
        self._loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reports: deque[asyncio.Future[Report]] = deque()
        self._patience = Patience(compiles_shapes=engine(spec.engine).compiles == "shapes")
        self._ids = itertools.count()
        self._verdict: WorkerError | None = None
        self._closing = False
        self._burial: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        index: int,
        spec: WorkerSpec,
        *,
        load_timeout_s: float,
        on_room: Callable[["Instance"], None],
        on_death: Callable[["Instance", WorkerError, deque[Job]], None],
    ) -> Self:
        """Start a worker process, bind it, load the model.

        Args:
            index: Its place in the pool.
            spec: How the worker is started.
            load_timeout_s: Time it has to get ready.
            on_room: Called when it can take a batch.
            on_death: Called once if it ends without having been asked to, with the batches it still had.

        Raises:
            StartError: The process could not be started as asked, or did not get ready in time.
            EngineError: The engine refuses the request.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
            try:
                process = await _start_beside(spec, theirs.fileno())
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)  # noqa: FBT003 - the standard library's signature
        try:
            instance = cls(index, spec, process, on_room, on_death)
            await asyncio.get_running_loop().create_unix_connection(lambda: instance, sock=ours)
        except BaseException:
            process.stop(0.0)
            raise
        try:
            await instance._load(load_timeout_s)
        except BaseException:
            await instance.close()
            raise
        return instance

    async def _load(self, timeout_s: float) -> None:
        self._send(
            StartWorker(
                protocol_version=PROTOCOL_VERSION,
                engine=self.spec.engine,
                load=self.spec.load,
                output=self.spec.output,
                cpus=self.spec.cpus or (),
            )
        )
        try:
            await asyncio.wait_for(asyncio.shield(self._loaded), timeout_s)
        except TimeoutError as error:
            raise StartError(
                f"instance {self.index} was not ready within {timeout_s:g} s; {self._last_words()}"
            ) from error
        except WorkerDiedError as error:
            if (why := explain_end(self.spec.python, self.process.output_tail(), self.process.poll())) is not None:
                raise EngineError(why) from error
            raise StartError(f"{error} (while it loaded the model)") from error

    @property
    def ready(self) -> bool:
        """Whether the model is loaded and the worker alive."""
        return self._loaded.done() and self._burial is None and self._verdict is None and not self._closing

    @property
    def has_room(self) -> bool:
        """Whether it can take a batch now."""
        if not self.ready or len(self.jobs) > 1:
            return False
        if not self.jobs:
            return True
        predicted_s = self._patience.predicted_s(self.jobs[0].batch)
        return predicted_s is not None and predicted_s < _PREFETCH_BELOW_S

    def take(self, job: Job) -> None:
        """Send a batch to the worker."""
        if not self.jobs:
            self._patience.progress()
        job.id = next(self._ids)
        self.jobs.append(job)
        arrays = _batch_arrays(job.batch)
        self._send(RunBatch(id=job.id, arrays=array_headers(arrays)), arrays)

    async def report(self) -> Report:
        """Return what is in effect in the worker, once it has run the batches before.

        Raises:
            WorkerError: It has ended, or does not answer.
        """
        if self._verdict is not None:
            raise self._verdict
        if not self.jobs:
            self._patience.progress()
        future: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._reports.append(future)
        self._send(ReportRequest())
        return await future

    def tick(self, elapsed_s: float) -> None:
        """Notice a worker that has ended, and stop one that has made no progress for longer than its work allows."""
        if self._verdict is not None:
            return
        if self.process.poll() is not None:
            self._transport.abort()  # a process that it left behind may hold the other end open for ever
        if not self.jobs and not self._reports:
            return
        silent_s = self._patience.tick(elapsed_s)
        limit_s = self._patience.limit_s(self.jobs[0].batch) if self.jobs else _REPORT_S
        if silent_s > limit_s:
            self._end(
                WorkerHungError(
                    f"instance {self.index} (pid {self.process.pid}) made no progress for {silent_s:.0f} s "
                    f"(its limit is {limit_s:.0f} s) and was stopped"
                )
            )

    async def close(self) -> None:
        """Stop the process and wait until it is gone. Idempotent."""
        self._closing = True
        self._transport.close()  # the worker ends itself when its socket does
        await asyncio.shield(self._begin_burial())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (called by asyncio)."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take in what the worker sent (called by asyncio)."""
        try:
            for message, arrays in self._reader.feed(data):
                self._receive(message, arrays)
        except WorkerError as error:
            self._end(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the worker has ended (called by asyncio)."""
        del exc
        self._begin_burial()

    def _send(self, message: msgspec.Struct, arrays: dict[str, NDArray[Any]] | None = None) -> None:
        self._transport.writelines(_joined_if_small(encode_frame(message, arrays)))

    def _receive(self, message: FromWorker, arrays: dict[str, NDArray[Any]]) -> None:
        match message:
            case BatchDone():
                self._finish(message, arrays)
            case BatchFailed(id=number, message=text):
                self._next_job(number).fail(WorkerError(f"instance {self.index} failed on a batch: {text}"))
            case Ready(protocol_version=version) if version == PROTOCOL_VERSION and not self._loaded.done():
                self.load_ns, self.first_forward_ns = message.load_ns, message.first_forward_ns
                self._loaded.set_result(None)
            case LoadFailed(usage=usage, message=text) if not self._loaded.done():
                error = EngineError(text) if usage else StartError(f"instance {self.index} cannot load: {text}")
                self._loaded.set_exception(error)
            case Report() if self._reports:
                self._patience.progress()
                report = self._reports.popleft()
                if not report.done():  # whoever asked may have given up
                    report.set_result(message)
            case _:
                raise WorkerError(f"instance {self.index} sent a {type(message).__name__} that nobody asked for")
        if self.has_room:
            self._on_room(self)

    def _next_job(self, number: int) -> Job:
        """Return the batch that was running; workers answer in order.

        Raises:
            WorkerError: The answer is to another one.
        """
        if not self.jobs or self.jobs[0].id != number:
            raise WorkerError(f"instance {self.index} answered batch {number}, which it does not run")
        self._patience.progress()
        return self.jobs.popleft()

    def _finish(self, done: BatchDone, arrays: dict[str, NDArray[Any]]) -> None:
        job = self._next_job(done.id)
        self._patience.learn(job.batch, done.finished_ns - done.started_ns)
        self.batches_done += 1
        if job.future.done():  # whoever asked has given up
            return
        timing = BatchTiming(
            submitted_ns=job.submitted_ns,
            started_ns=done.started_ns,
            engine_ns=done.engine_ns,
            finished_ns=done.finished_ns,
            done_ns=time.monotonic_ns(),
        )
        job.future.set_result(BatchResult(arrays, self.index, timing))

    def _end(self, verdict: WorkerError) -> None:
        """Kill the worker for a reason of ours; `connection_lost` follows."""
        if self._verdict is None:
            self._verdict = verdict
            self.process.stop(0.0)

    def _begin_burial(self) -> asyncio.Task[None]:
        if self._burial is None:
            self._burial = asyncio.get_running_loop().create_task(self._bury())
        return self._burial

    async def _bury(self) -> None:
        """Wait for the process, kill it if it lingers, and tell everyone who still waits."""
        if not self._closing:
            await asyncio.to_thread(self.process.wait, _GRACE_S)
        ended = self.process.poll()
        await asyncio.to_thread(self.process.stop, _GRACE_S if self._closing else 0.0)
        error = self._verdict or self._obituary(ended)
        self._verdict = error
        was_ready = self._loaded.done() and self._loaded.exception() is None
        if not self._loaded.done():
            self._loaded.set_exception(error)
            self._loaded.exception()  # marks it as seen; nobody may be waiting any more
        for report in self._reports:
            if not report.done():
                report.set_exception(error)
        jobs, self.jobs = self.jobs, deque()
        if was_ready and not self._closing:
            self._on_death(self, error, jobs)
        for job in jobs:
            if self._closing:
                job.fail(error)

    def _obituary(self, code: int | None) -> WorkerError:
        if self._closing:
            return WorkerError(f"instance {self.index} was closed before the batch was done")
        return WorkerDiedError(
            f"instance {self.index} (pid {self.process.pid}) {_how_it_ended(code)}; {self._last_words()}"
        )

    def _last_words(self) -> str:
        words = last_words(self.process.output_tail(), 3)
        return f"its last words: {words}" if words else "it left no message"


def _batch_arrays(batch: TokenBatch) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {
        "ids": batch.ids.astype(np.int32, copy=False),
        "lengths": batch.lengths.astype(np.int32, copy=False),
    }
    if batch.type_ids is not None:
        arrays["type_ids"] = batch.type_ids.astype(np.int32, copy=False)
    return arrays


def _joined_if_small(buffers: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """One buffer is one system call; joining is cheaper than several calls as long as little is copied."""
    return [b"".join(buffers)] if sum(map(len, buffers)) < _SOCKET_BUFFER_BYTES else buffers


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "closed its connection without ending"
    if code == -signal.SIGKILL:
        return "was ended by SIGKILL, by somebody or because memory ran out"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"exited with code {code}"


async def _start_beside(spec: WorkerSpec, fd: int) -> Process:
    """Start a worker while the event loop goes on.

    Raises:
        StartError: It could not be started as asked.
    """
    starting = asyncio.ensure_future(asyncio.to_thread(start_worker, spec, fd))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            starting.result().stop(0.0)
        raise
    except RuntimeError as error:  # how Python says that it cannot have another thread
        raise StartError(f"cannot start a worker: {error}; allow more processes (ulimit -u, pids.max)") from error
