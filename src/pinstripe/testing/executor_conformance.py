"""What holds for every executor. Subclass `ExecutorConformance` in a test module and say how to make one."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import numpy as np
import pytest

from pinstripe.errors import WorkerError
from pinstripe.models import TokenBatch
from pinstripe.pool import Executor

__all__ = ["ExecutorConformance", "closing"]

_Returned = TypeVar("_Returned")


@asynccontextmanager
async def closing(executor: Executor) -> AsyncIterator[Executor]:
    """Close an executor at the end."""
    try:
        yield executor
    finally:
        await executor.close()


def _batch(size: int, tokens: int) -> TokenBatch:
    ids = np.arange(size * tokens, dtype=np.int32).reshape(size, tokens) + 1
    return TokenBatch(ids=ids, lengths=np.full(size, tokens, np.int32))


class ExecutorConformance:
    """Tests for an executor of two instances; `make` opens one."""

    make: Callable[[], AbstractAsyncContextManager[Executor]]

    def run(self, main: Coroutine[Any, Any, _Returned]) -> _Returned:
        """Run a coroutine; in a subclass perhaps in virtual time."""
        return asyncio.run(main)

    def test_named_instance_runs_the_batch(self) -> None:
        """A batch for an instance is run by that instance."""

        async def ran_on() -> list[int]:
            async with self.make() as executor:
                results = [await executor.submit(_batch(2, 8), instance=index) for index in (1, 0, 1)]
                return [result.instance for result in results]

        assert self.run(ran_on()) == [1, 0, 1]

    def test_more_batches_than_capacity_all_come_back(self) -> None:
        """Batches beyond the capacity wait, and each gets the result of its own texts."""

        async def rows() -> list[int]:
            async with self.make() as executor:
                assert executor.capacity == 2
                sizes = [1, 5, 2, 4, 3, 6, 1, 2]
                results = await asyncio.gather(*(executor.submit(_batch(size, 8)) for size in sizes))
                assert all(result.timing.submitted_ns <= result.timing.started_ns for result in results)
                assert all(result.timing.finished_ns <= result.timing.done_ns for result in results)
                return [len(next(iter(result.outputs.values()))) for result in results]

        assert self.run(rows()) == [1, 5, 2, 4, 3, 6, 1, 2]

    def test_both_instances_take_part(self) -> None:
        """Without a named instance, work spreads over all."""

        async def ran_on() -> set[int]:
            async with self.make() as executor:
                results = await asyncio.gather(*(executor.submit(_batch(4, 32)) for _ in range(8)))
                return {result.instance for result in results}

        assert self.run(ran_on()) == {0, 1}

    def test_closed_executor_refuses(self) -> None:
        """After closing, a batch fails at once instead of waiting for ever; closing twice is harmless."""

        async def submit_late() -> None:
            async with self.make() as executor:
                await executor.close()
                await executor.close()
                await asyncio.wait_for(executor.submit(_batch(1, 8)), 10)

        with pytest.raises(WorkerError, match="closed"):
            self.run(submit_late())
