"""The seam that everything above runs on: something that has a capacity and takes batches."""

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from pinstripe.models import TokenBatch

__all__ = ["BatchResult", "BatchTiming", "Executor"]


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """When a batch was where; nanoseconds of one monotonic clock.

    Attributes:
        submitted_ns: It was handed to the executor.
        started_ns: The instance began to work on it.
        engine_ns: Duration of the forward pass alone.
        finished_ns: The instance had its results.
        done_ns: The caller's side had them.
    """

    submitted_ns: int
    started_ns: int
    engine_ns: int
    finished_ns: int
    done_ns: int

    @property
    def round_trip_ns(self) -> int:
        """What the caller waited."""
        return self.done_ns - self.submitted_ns


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Results of a batch.

    Attributes:
        outputs: Arrays by name, as `Head` names them; `{"output": …}` for raw output.
        instance: Index of the instance that ran it.
        timing: When it was where.
    """

    outputs: dict[str, NDArray[Any]]
    instance: int
    timing: BatchTiming


class Executor(Protocol):
    """Anything that takes batches and has a capacity: a pool, a simulated machine, a remote host, a fake."""

    @property
    def capacity(self) -> int:
        """Batches it can run at the same time: its number of instances."""
        ...

    def available(self, instance: int) -> bool:
        """Return whether an instance can run a batch; not while its worker is started again, or once it is given up."""
        ...

    async def submit(self, batch: TokenBatch, *, instance: int | None = None) -> BatchResult:
        """Run a batch.

        Args:
            batch: Token ids.
            instance: Index of the instance that has to run it, 0 to `capacity - 1`; None for whichever is free first.

        Raises:
            WorkerError: The batch could not be run; with `instance` given, already at that instance's first failure.
        """
        ...

    async def close(self) -> None:
        """Stop; waiting and running batches fail. Idempotent."""
        ...
