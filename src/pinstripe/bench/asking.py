"""Texts on their way through a dispatcher while it is measured."""

from collections.abc import Sequence

from pinstripe.bench.measurement import Warmup, warmup
from pinstripe.dispatch import Dispatcher, Request, loop_time_ns
from pinstripe.models import EncodedText
from pinstripe.pool import BatchTiming

__all__ = ["Asking"]


class Asking:
    """Asks a dispatcher for texts in their order, round and round, and notes which batches these were in."""

    def __init__(self, dispatcher: Dispatcher, rows: Sequence[EncodedText], texts: int) -> None:
        """Begin with no request.

        Args:
            dispatcher: What is asked.
            rows: The texts; at least one.
            texts: Texts in each request, at least 1; may be more than there are.
        """
        self._dispatcher = dispatcher
        self._rows = rows
        self._texts = texts
        self._batches: tuple[dict[BatchTiming, int], ...] = tuple({} for _ in range(dispatcher.capacity))
        self.samples = 0
        self.tokens = 0

    def lengths(self, number: int) -> list[int]:
        """Return the tokens of each text of a request."""
        return [len(row) for row in self._request(number)]

    async def ask(self, number: int) -> int:
        """Ask for the texts of a request, by its number from 0; return how long the answer took in nanoseconds.

        Raises:
            ExecutionError: It was not answered.
        """
        rows = self._request(number)
        asked_ns = loop_time_ns()
        reply = await self._dispatcher.request(Request(rows, asked_ns))
        self.samples += len(rows)
        self.tokens += sum(map(len, rows))
        for part in reply.parts:
            self._batches[part.instance][part.timing] = part.batch_texts * part.batch_tokens
        return reply.done_ns - asked_ns

    async def warm_up(self, limit_s: float) -> Warmup:
        """Run short and long texts on every instance until times have settled, for some seconds at most.

        Raises:
            WorkerError: An instance failed.
        """
        warmed = await self._dispatcher.warm_up(self._rows, limit_s)
        return warmup(warmed.lanes, steady=warmed.steady)

    @property
    def lanes(self) -> list[list[BatchTiming]]:
        """The batches of each instance that held an answered text, in order of their ends."""
        return [sorted(batches, key=lambda timing: timing.done_ns) for batches in self._batches]

    @property
    def padded_tokens(self) -> int:
        """Tokens of these batches, padding included."""
        return sum(sum(batches.values()) for batches in self._batches)

    def _request(self, number: int) -> tuple[EncodedText, ...]:
        first = number * self._texts
        return tuple(self._rows[index % len(self._rows)] for index in range(first, first + self._texts))
