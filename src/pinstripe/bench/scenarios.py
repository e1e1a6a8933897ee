"""How batches of one shape arrive at an executor while it is measured."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from pinstripe.bench.measurement import Measurement, measurement, warmup
from pinstripe.bench.steadiness import Steadiness
from pinstripe.bench.timings import first_submitted_ns, last_done_ns, occupied_ns, span_ns
from pinstripe.errors import ConfigurationError
from pinstripe.models import TokenBatch
from pinstripe.pool import BatchTiming, Executor

__all__ = ["Limits", "ignore", "offline", "single_stream"]

_IN_FLIGHT: Final = 2
"""Batches offered to each instance at a time: one runs, one may be held, so that no instance waits for the parent."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to measure. A window ends when both minimums are met; at the maximum, whatever the number of forwards.

    Attributes:
        min_s: Seconds of the window, above 0.
        min_forwards: Forward passes of each instance, at least 1.
        max_s: Upper bound of the window in seconds, at least `min_s`; one forward pass of each instance is always
            counted.
        warmup_max_s: Upper bound of the warm-up in seconds; at least two forward passes are always run.
    """

    min_s: float = 2.0
    min_forwards: int = 10
    max_s: float = 300.0
    warmup_max_s: float = 10.0

    def __post_init__(self) -> None:
        """Check the bound.

        Raises:
            ConfigurationError: The maximum is below the minimum.
        """
        if self.max_s < self.min_s:
            raise ConfigurationError(
                f"a window of {self.min_s:g} s at least and {self.max_s:g} s at most is impossible"
            )

    def over(self, elapsed_ns: int, forwards: int) -> bool:
        """Return whether a window ends, by the least number of forwards of any instance."""
        elapsed_s = elapsed_ns / 1e9
        enough = elapsed_s >= self.min_s and forwards >= self.min_forwards
        return enough or (elapsed_s >= self.max_s and forwards > 0)


def ignore() -> None:
    """Do nothing when a window opens."""


async def single_stream(
    executor: Executor, part: TokenBatch, limits: Limits, on_open: Callable[[], None] = ignore
) -> Measurement:
    """One global batch at a time, an equal part for each instance; its latency is that of the slowest part.

    Args:
        executor: What is measured.
        part: The part of the global batch that each instance takes.
        limits: How long to measure.
        on_open: Called when the window opens, with nothing in flight.

    Raises:
        WorkerError: An instance failed.
    """

    async def rounds(done: Callable[[list[list[BatchTiming]]], bool]) -> list[list[BatchTiming]]:
        finished: list[list[BatchTiming]] = []
        while not finished or not done(finished):
            results = await asyncio.gather(
                *(executor.submit(part, instance=index) for index in range(executor.capacity))
            )
            finished.append([result.timing for result in results])
        return finished

    steadiness = Steadiness(limits.warmup_max_s)
    before = await rounds(lambda finished: steadiness.reached(span_ns(finished[-1])))
    on_open()
    counted = await rounds(
        lambda finished: limits.over(last_done_ns(finished[-1]) - first_submitted_ns(finished[0]), len(finished))
    )
    opened_ns = first_submitted_ns(counted[0])
    samples = part.size * executor.capacity * len(counted)
    return measurement(
        warmup=warmup(_by_instance(before), steady=steadiness.settled),
        complete=len(counted) >= limits.min_forwards,
        opened_ns=opened_ns,
        lanes=_by_instance(counted),
        samples_per_s=samples / (last_done_ns(counted[-1]) - opened_ns) * 1e9,
        latency_ns=[span_ns(timings) for timings in counted],
        samples=samples,
        tokens=samples // part.size * part.tokens,
        padded_tokens=samples // part.size * part.ids.size,
    )


async def offline(
    executor: Executor, batch: TokenBatch, limits: Limits, on_open: Callable[[], None] = ignore
) -> Measurement:
    """Every instance runs batches of its own, as fast as it can, until the last one has met the minimums.

    Args:
        executor: What is measured.
        batch: The batch that each instance repeats.
        limits: How long to measure.
        on_open: Called when the window opens, with nothing in flight.

    Raises:
        WorkerError: An instance failed.
    """
    instances = range(executor.capacity)
    steadiness = [Steadiness(limits.warmup_max_s) for _ in instances]

    def settled(lanes: list[list[BatchTiming]], index: int) -> bool:
        steadiness[index].reached(lanes[index][-1].finished_ns - lanes[index][-1].started_ns)
        return all(one.over for one in steadiness)

    def ended(lanes: list[list[BatchTiming]], index: int) -> bool:
        return limits.over(lanes[index][-1].done_ns - _opened(lanes), min(map(len, lanes)))

    before = await _run_lanes(executor, batch, settled)
    on_open()
    lanes = await _run_lanes(executor, batch, ended)
    opened_ns = _opened(lanes)
    batches = sum(map(len, lanes))
    return measurement(
        warmup=warmup(before, steady=all(one.settled for one in steadiness)),
        complete=min(map(len, lanes)) >= limits.min_forwards,
        opened_ns=opened_ns,
        lanes=lanes,
        samples_per_s=sum(len(lane) * batch.size / (lane[-1].done_ns - opened_ns) * 1e9 for lane in lanes),
        latency_ns=[value for lane in lanes for value in occupied_ns(lane)],
        samples=batches * batch.size,
        tokens=batches * batch.tokens,
        padded_tokens=batches * batch.ids.size,
    )


async def _run_lanes(
    executor: Executor, batch: TokenBatch, over: Callable[[list[list[BatchTiming]], int], bool]
) -> list[list[BatchTiming]]:
    """Keep every instance busy until `over`; return each one's batches that ended before that.

    All begin together (nothing is in flight before), and all stay loaded until the end.

    Args:
        executor: What is kept busy.
        batch: What each instance repeats.
        over: Called with all lanes and the index of the instance that has just finished a batch.
    """
    lanes: list[list[BatchTiming]] = [[] for _ in range(executor.capacity)]
    ended = False

    async def feed(index: int) -> None:
        nonlocal ended
        while not ended:
            result = await executor.submit(batch, instance=index)
            if not ended:
                lanes[index].append(result.timing)
                ended = over(lanes, index)

    try:
        await asyncio.gather(*(feed(index) for index in range(executor.capacity) for _ in range(_IN_FLIGHT)))
    finally:
        ended = True  # when one fails, the others stop as well
    return lanes


def _opened(lanes: list[list[BatchTiming]]) -> int:
    return first_submitted_ns(lane[0] for lane in lanes if lane)


def _by_instance(rounds: list[list[BatchTiming]]) -> list[list[BatchTiming]]:
    return [list(lane) for lane in zip(*rounds, strict=True)]
