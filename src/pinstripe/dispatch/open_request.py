"""A request that is not answered yet."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pinstripe.dispatch.request import Part, Reply, Request
from pinstripe.models import EncodedText, TokenBatch
from pinstripe.pool import BatchResult

__all__ = ["OpenRequest", "answer"]


@dataclass(slots=True, eq=False)
class OpenRequest:
    """Who waits for what.

    Attributes:
        request: What was asked.
        numbers: The numbers of its texts in the queue, in their order.
        future: Gets the reply or the error.
        parts: What is there of the reply.
        missing: Texts without a result.
    """

    request: Request
    numbers: range
    future: asyncio.Future[Reply]
    parts: list[Part] = field(default_factory=list)
    missing: int = field(init=False)

    def __post_init__(self) -> None:
        self.missing = len(self.numbers)

    def row(self, number: int) -> EncodedText:
        """Return the text of a number."""
        return self.request.rows[number - self.numbers.start]

    def keep(self, places: Mapping[int, int], batch: TokenBatch, result: BatchResult, now_ns: int) -> None:
        """Take the results of some texts, by number and place in the batch; with the last ones reply."""
        numbers = sorted(places)
        rows = [places[number] for number in numbers]
        self.parts.append(
            Part(
                texts=np.array(numbers, dtype=np.intp) - self.numbers.start,
                outputs={name: array[rows] for name, array in result.outputs.items()},
                instance=result.instance,
                timing=result.timing,
                batch_texts=batch.size,
                batch_tokens=batch.sequence_length,
            )
        )
        self.missing -= len(rows)
        if not self.missing and not self.future.done():
            self.future.set_result(Reply(tuple(self.parts), now_ns))

    def fail(self, error: Exception) -> None:
        """Tell whoever waits, if anyone still does."""
        if not self.future.done():
            self.future.set_exception(error)


def answer(
    requests: Mapping[int, OpenRequest], numbers: Sequence[int], batch: TokenBatch, result: BatchResult, now_ns: int
) -> None:
    """Give each request the results of its texts.

    Args:
        requests: The requests of these numbers at least.
        numbers: Number of each text of the batch.
        batch: What was run.
        result: What came of it.
        now_ns: The time.
    """
    places: dict[OpenRequest, dict[int, int]] = {}  # by identity, see `eq=False`
    for place, number in enumerate(numbers):
        places.setdefault(requests[number], {})[number] = place
    for request, own in places.items():
        request.keep(own, batch, result, now_ns)
