"""A batch on its way through the pool."""

import asyncio
from dataclasses import dataclass

from pinstripe.models import TokenBatch
from pinstripe.pool.executor import BatchResult

__all__ = ["Job"]


@dataclass(slots=True, eq=False)
class Job:
    """A batch, who waits for it, and what happened to it so far.

    Attributes:
        batch: Token ids.
        future: Gets the result or the error.
        submitted_ns: When it was handed to the pool.
        instance: Index of the only instance that may run it, or None.
        id: Number of the message that carries it; of the last one, if it was sent more than once.
        avoid: Index of the instance that died over it, which should not get it again.
    """

    batch: TokenBatch
    future: asyncio.Future[BatchResult]
    submitted_ns: int
    instance: int | None
    id: int = -1
    avoid: int | None = None

    def fail(self, error: BaseException) -> None:
        """Tell whoever waits, if anyone still does."""
        if not self.future.done():
            self.future.set_exception(error)
