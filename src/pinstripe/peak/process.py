"""The parent's side of one process of a probe."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import msgspec

from pinstripe.errors import WorkerDiedError, WorkerError, WorkerHungError
from pinstripe.peak.description import PeakPrecision, ProbePlace
from pinstripe.peak.messages import FromProbe, ProbeFailed, ToProbe
from pinstripe.runtime import Process, StartRequest, start, thread_environment

__all__ = ["ProbeProcess", "probe_process"]

_Answer = TypeVar("_Answer", bound=FromProbe)
# Each makes a library compute with other kernels, or in another precision, than it would by itself.
_FOREIGN_VARIABLES: Final = (
    "OPENBLAS_CORETYPE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)


class ProbeProcess:
    """A probe's process, asked one thing at a time. Use `probe_process`."""

    def __init__(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer_limit_s: float
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._answer_limit_s = answer_limit_s

    async def ask(self, message: ToProbe, kind: type[_Answer]) -> _Answer:
        """Send a message and return its answer.

        Raises:
            WorkerError: The probe failed, its process ended, or there was no answer in time.
        """
        self._writer.write(msgspec.json.encode(message) + b"\n")
        return await self.answer(kind)

    async def answer(self, kind: type[_Answer]) -> _Answer:
        """Return the next answer; errors as `ask`."""
        try:
            line = await asyncio.wait_for(self._reader.readline(), self._answer_limit_s)
        except TimeoutError as error:
            raise WorkerHungError(f"no answer within {self._answer_limit_s:g} s") from error
        except ConnectionError:
            line = b""
        if not line:
            status = await asyncio.to_thread(self._process.wait, 1.0)
            raise WorkerDiedError(f"its process ended with status {status}: {self._last_words()}")
        answer = msgspec.json.decode(line, type=FromProbe)
        if isinstance(answer, ProbeFailed):
            raise WorkerError(answer.reason)
        if not isinstance(answer, kind):
            raise WorkerError(f"it answered {type(answer).__name__} instead of {kind.__name__}")
        return answer

    def _last_words(self) -> str:
        return " ".join(self._process.output_tail().split())[-200:] or "it said nothing"


@asynccontextmanager
async def probe_process(
    name: str, precision: PeakPrecision, place: ProbePlace, *, answer_limit_s: float
) -> AsyncGenerator[ProbeProcess, None]:
    """Start a process of a probe; it is stopped at the end.

    Args:
        name: Of the probe.
        precision: Precision of the operands.
        place: Where it runs.
        answer_limit_s: Longest time that it may take for an answer, in seconds.

    Raises:
        StartError: It could not be started there.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = await _start_beside(_request(name, precision, place, theirs.fileno()))
        except BaseException:
            ours.close()
            raise
    try:
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        try:
            yield ProbeProcess(process, reader, writer, answer_limit_s)
        finally:
            writer.close()
    finally:
        process.stop(0.0)


async def _start_beside(request: StartRequest) -> Process:
    """Start a process in another thread; if the caller is cancelled meanwhile, it does not stay behind."""
    starting = asyncio.ensure_future(asyncio.to_thread(start, request))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        (await starting).stop(0.0)
        raise


def _request(name: str, precision: PeakPrecision, place: ProbePlace, fd: int) -> StartRequest:
    threads = "none" if place.threads is None else str(place.threads)
    return StartRequest(
        # -P: a file in the working directory that is named like a module must not be imported in its place.
        argv=(sys.executable, "-P", "-m", "pinstripe.peak.probe", str(fd), name, precision, threads),
        cpus=place.cpus,
        memory_policy=place.memory_policy,
        nodes=place.nodes,
        environment={
            **thread_environment(place.threads, os.environ),
            **dict.fromkeys(_FOREIGN_VARIABLES),
        },
        pass_fds=(fd,),
        output="keep",
    )
