"""What a parent and its workers say to each other."""

from typing import Literal

import msgspec

from pinstripe.engines import EngineReport, LoadRequest
from pinstripe.runtime import ProcessObservation

__all__ = [
    "PROTOCOL_VERSION",
    "ArrayHeader",
    "BatchDone",
    "BatchFailed",
    "FromWorker",
    "LoadFailed",
    "Output",
    "Ready",
    "Report",
    "ReportRequest",
    "RunBatch",
    "StartWorker",
    "ToWorker",
]

PROTOCOL_VERSION = 3
"""Raised with every incompatible change: parent and worker may be installed in two Python environments."""

Output = Literal["task", "raw"]


class ArrayHeader(msgspec.Struct, frozen=True, array_like=True):
    """Name, numpy type string and shape of one array that follows a message."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class StartWorker(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Everything a worker needs to begin; nothing else is inherited.

    Attributes:
        protocol_version: The parent's.
        engine: Name of the engine.
        load: What to load and how to run it.
        output: `task` for the small results of the model's task, `raw` for hidden states or logits.
        cpus: CPUs that every thread of the worker is held to; empty for an unpinned one.
    """

    protocol_version: int
    engine: str
    load: LoadRequest
    output: Output
    cpus: tuple[int, ...]


class RunBatch(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Run the token batch that follows. Arrays: ids, lengths and, if there are token types, type_ids."""

    id: int
    arrays: tuple[ArrayHeader, ...]


class ReportRequest(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Say what is in effect now."""


class Ready(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The model is loaded and has run once.

    Attributes:
        protocol_version: The worker's.
        load_ns: Time to load the model.
        first_forward_ns: Time of the first forward pass, in which many frameworks compile or allocate.
    """

    protocol_version: int
    load_ns: int
    first_forward_ns: int


class LoadFailed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The model cannot be loaded as asked.

    Attributes:
        usage: Whether the request has to change (an `EngineError`), or loading broke.
        message: One line for people.
    """

    usage: bool
    message: str


class BatchDone(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Results of a batch follow. Times are of the host's monotonic clock, which all its processes share.

    Attributes:
        id: The batch's.
        started_ns: When the worker had read the batch.
        engine_ns: Duration of the forward pass alone.
        finished_ns: When the results were ready to send.
        arrays: The results.
    """

    id: int
    started_ns: int
    engine_ns: int
    finished_ns: int
    arrays: tuple[ArrayHeader, ...]


class BatchFailed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The forward pass raised; the worker goes on."""

    id: int
    message: str


class Report(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """What is in effect in the worker.

    Attributes:
        engine: The engine's own report.
        thread_pools: Threads of each pool that threadpoolctl finds, by library; empty where it is not installed.
        rebound_threads: See `InstanceEvidence`.
        observation: What the process found out about itself.
    """

    engine: EngineReport
    thread_pools: dict[str, int]
    rebound_threads: int
    observation: ProcessObservation


ToWorker = StartWorker | RunBatch | ReportRequest
FromWorker = Ready | LoadFailed | BatchDone | BatchFailed | Report
