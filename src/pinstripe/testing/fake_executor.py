"""An executor without processes, whose time is computed."""

import asyncio
import heapq
import itertools
from collections.abc import Callable

import numpy as np

from pinstripe.errors import WorkerError
from pinstripe.models import TokenBatch
from pinstripe.pool import BatchResult, BatchTiming

__all__ = ["FakeExecutor"]


class FakeExecutor:
    """Instances that take a known time for each batch, on a clock that jumps from one event to the next.

    A batch goes to the instance that is named, or to the one that is free first, and waits there for its turn.
    """

    def __init__(self, capacity: int, cost_ns: Callable[[int, TokenBatch], int], fail_at: int | None = None) -> None:
        """Describe it.

        Args:
            capacity: Number of instances.
            cost_ns: Time that an instance (its index) takes for a batch, above 0.
            fail_at: Number of the submission, from 1, that fails; None for none.
        """
        self._cost_ns = cost_ns
        self._fail_at = fail_at
        self._free_ns = [0] * capacity
        self._now_ns = 0
        self._numbers = itertools.count(1)
        self._ends: list[tuple[int, int, asyncio.Future[None]]] = []
        self._clockwork: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def capacity(self) -> int:
        """Number of instances."""
        return len(self._free_ns)

    def available(self, instance: int) -> bool:
        """See `Executor.available`."""
        del instance
        return True

    async def submit(self, batch: TokenBatch, *, instance: int | None = None) -> BatchResult:
        """See `Executor.submit`; the output is each text's number of real tokens."""
        if self._closed:
            raise WorkerError("the executor is closed")
        number = next(self._numbers)
        index = self._free_ns.index(min(self._free_ns)) if instance is None else instance
        submitted_ns = self._now_ns
        started_ns = max(submitted_ns, self._free_ns[index])
        cost_ns = self._cost_ns(index, batch)
        self._free_ns[index] = started_ns + cost_ns
        await self._reach(started_ns + cost_ns, number)
        if number == self._fail_at:
            raise WorkerError(f"submission {number} fails, as it was told to")
        timing = BatchTiming(
            submitted_ns=submitted_ns,
            started_ns=started_ns,
            engine_ns=cost_ns,
            finished_ns=started_ns + cost_ns,
            done_ns=self._now_ns,
        )
        return BatchResult({"output": batch.lengths.astype(np.float32)[:, None]}, index, timing)

    async def close(self) -> None:
        """See `Executor.close`."""
        self._closed = True
        for _, _, end in self._ends:
            if not end.done():
                end.set_exception(WorkerError("the executor was closed"))
        self._ends.clear()

    async def _reach(self, time_ns: int, number: int) -> None:
        """Wait until the clock shows `time_ns`."""
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._ends, (time_ns, number, end))
        if self._clockwork is None or self._clockwork.done():
            self._clockwork = asyncio.get_running_loop().create_task(self._tick())
        await end

    async def _tick(self) -> None:
        """Let everyone act who can, then jump to the next end."""
        while self._ends:
            for _ in range(8):  # more steps than anyone needs from an answer to the next submission
                await asyncio.sleep(0)
            if self._ends:
                self._now_ns, _, end = heapq.heappop(self._ends)
                if not end.done():
                    end.set_result(None)
