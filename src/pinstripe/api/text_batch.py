"""Texts on their way into an executor, and out of it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from pinstripe.configuration import BatchRule, InstanceGroup
from pinstripe.dispatch import make_class_batches
from pinstripe.models import EncodedText, Text, TokenBatch, Tokenizer
from pinstripe.pool import BatchResult, Executor

__all__ = ["IN_FLIGHT", "IN_FLIGHT_OF_GROUPS", "Batch", "TextBatch", "batch_texts", "prefetched", "run_batches"]

T = TypeVar("T")

IN_FLIGHT: Final = 2
"""Batches for each instance at a time: one runs, one waits, so that no instance waits for the parent."""
IN_FLIGHT_OF_GROUPS: Final = 8
"""The same where instances choose among batches by their length: some of each class should wait."""


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Some of many texts, tokenized and padded.

    Attributes:
        indices: Which texts these are; a long context's text stands in several batches, see `Tokenizer.encode_windows`.
        rows: Token ids of each.
        tokens: The same, padded to one length.
    """

    indices: NDArray[np.intp]
    rows: list[EncodedText]
    tokens: TokenBatch


Batch = TypeVar("Batch", bound=TextBatch)


def batch_texts(
    tokenizer: Tokenizer,
    texts: Sequence[Text],
    rules: Sequence[BatchRule],
    groups: Sequence[InstanceGroup] = (),
    *,
    prompt: str | None = None,
    truncate: bool = True,
    offsets: bool = False,
    last_for: int | None = None,
) -> list[TextBatch]:
    """Tokenize texts and put them into batches, in the order in which they should run.

    Args:
        tokenizer: The model's.
        texts: Texts or pairs of texts.
        rules: How to batch: the texts of each group's class by a rule of its own, or all by one.
        groups: The groups of instances whose classes are kept apart; none for one class of all lengths.
        prompt: See `Tokenizer.encode`.
        truncate: See `Tokenizer.encode`.
        offsets: See `Tokenizer.encode`.
        last_for: See `make_class_batches`.

    Raises:
        UsageError: See `Tokenizer.encode`.
    """
    rows, owners = tokenizer.encode_windows(texts, prompt=prompt, truncate=truncate, offsets=offsets)
    batches = []
    for places in make_class_batches([len(row) for row in rows], rules, groups, last_for=last_for):
        members = [rows[place] for place in places]
        batches.append(TextBatch(owners[places], members, tokenizer.pad(members)))
    return batches


async def prefetched(next_part: Callable[[], Awaitable[list[T] | None]]) -> AsyncGenerator[T]:
    """Yield the items of one part after the other, while the next part is already being made.

    Args:
        next_part: Makes a part; None when there are no more.
    """
    upcoming = asyncio.ensure_future(next_part())
    try:
        while (part := await upcoming) is not None:
            upcoming = asyncio.ensure_future(next_part())
            for item in part:
                yield item
    finally:
        upcoming.cancel()
        await asyncio.wait([upcoming])


async def run_batches(
    executor: Executor,
    batches: AsyncGenerator[Batch],
    on_result: Callable[[Batch, BatchResult], Awaitable[None]],
    *,
    in_flight: int = IN_FLIGHT,
) -> None:
    """Keep an executor busy until there are no more batches.

    Args:
        executor: Runs them; whichever of its instances is free takes the next.
        batches: In the order in which they should begin.
        on_result: Gets each batch's result, in the order in which they end.
        in_flight: Batches that it is given for each instance at a time.

    Raises:
        WorkerError: A batch could not be run; the others are given up.
    """
    turn = asyncio.Lock()

    async def lane() -> None:
        while True:
            async with turn:
                batch = await anext(batches, None)
            if batch is None:
                return
            await on_result(batch, await executor.submit(batch.tokens))

    async with aclosing(batches):
        lanes = [asyncio.ensure_future(lane()) for _ in range(in_flight * executor.capacity)]
        try:
            await asyncio.gather(*lanes)
        finally:
            for one in lanes:
                one.cancel()
            await asyncio.wait(lanes)
