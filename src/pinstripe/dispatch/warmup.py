"""Batches that instances run before anybody waits for them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pinstripe.dispatch.cost_model import CostModel
from pinstripe.models import EncodedText, TokenBatch
from pinstripe.pool import BatchTiming, Executor

__all__ = ["WarmedUp", "warm_up"]

_SETTLED: Final = 0.05
"""Rounds whose times differ by less than this share count as equal."""
_LEAST_ROUNDS: Final = 3
"""The first fills caches and memory; two more can be compared."""


@dataclass(frozen=True, slots=True)
class WarmedUp:
    """What was run.

    Attributes:
        lanes: The batches of each instance, in order.
        steady: Whether times had settled; False if the limit came first.
    """

    lanes: list[list[BatchTiming]]
    steady: bool


async def warm_up(
    executor: Executor,
    rows: Sequence[EncodedText],
    pad: Callable[[Sequence[EncodedText]], TokenBatch],
    *,
    groups: Sequence[int],
    budgets: Sequence[int],
    costs: Sequence[CostModel],
    limit_s: float,
) -> WarmedUp:
    """Run short, usual and long texts on every instance, alone and in full batches, in rounds until times settle.

    Args:
        executor: Has the instances.
        rows: Texts such as will come; at least one.
        pad: Makes a batch of texts.
        groups: Group of each instance.
        budgets: Most tokens of a batch, by group.
        costs: What learns from the rounds but the first, by group.
        limit_s: Most seconds; three rounds are always run.

    Raises:
        WorkerError: An instance failed.
    """
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + limit_s
    steady = [False] * len(groups)

    async def one(index: int) -> list[BatchTiming]:
        group = groups[index]
        batches = _batches(rows, pad, budgets[group])
        timings: list[BatchTiming] = []
        before_ns = 0
        rounds = 0
        while rounds < _LEAST_ROUNDS or not (all(steady) or loop.time() > ends_s):
            spent_ns = 0
            for batch in batches:
                timing = (await executor.submit(batch, instance=index)).timing
                timings.append(timing)
                duration_ns = timing.finished_ns - timing.started_ns
                spent_ns += duration_ns
                if rounds:
                    costs[group].observe(batch.size, batch.sequence_length, duration_ns)
            rounds += 1
            steady[index] = steady[index] or (rounds > 1 and abs(spent_ns - before_ns) <= _SETTLED * before_ns)
            before_ns = spent_ns
        return timings

    running = [loop.create_task(one(index)) for index in range(len(groups))]
    try:
        lanes = await asyncio.gather(*running)
    finally:  # when one fails, the others stop as well
        for task in running:
            task.cancel()
        await asyncio.wait(running)
    return WarmedUp(list(lanes), all(steady))


def _batches(
    rows: Sequence[EncodedText], pad: Callable[[Sequence[EncodedText]], TokenBatch], budget: int
) -> list[TokenBatch]:
    """Return the longest text first, so that its memory is had; each alone, and as many of it as the budget allows."""
    ordered = sorted(rows, key=len)
    chosen = {len(row): row for row in (ordered[-1], ordered[len(ordered) // 2], ordered[0])}
    sizes = [(row, size) for row in chosen.values() for size in sorted({1, max(1, budget // len(row))})]
    return [pad([row] * size) for row, size in sizes]
