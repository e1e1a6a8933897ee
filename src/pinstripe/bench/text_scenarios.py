"""How the texts of a file arrive at an executor while it is measured.

The unit is a whole pass over the file. A window that ended in its middle would have measured other texts than a longer
one: in `sorted` order, the long ones.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from pinstripe.bench.inputs import split_batch
from pinstripe.bench.measurement import Measurement, Warmup, measurement, warmup
from pinstripe.bench.scenarios import Limits, ignore
from pinstripe.bench.steadiness import Steadiness
from pinstripe.bench.timings import first_submitted_ns, last_done_ns, occupied_ns, span_ns
from pinstripe.models import TokenBatch
from pinstripe.pool import BatchTiming, Executor

__all__ = ["offline_texts", "single_stream_texts"]

_Lanes: TypeAlias = list[list[BatchTiming]]
"""The batches of each instance, in order of their ends."""
_IN_FLIGHT: Final = 2
"""Batches offered for each instance at a time: one runs, one may be held, so that no instance waits for the parent."""


async def offline_texts(
    executor: Executor,
    batches: Sequence[TokenBatch],
    limits: Limits,
    on_open: Callable[[], None] = ignore,
    *,
    in_flight: int | None = None,
) -> Measurement:
    """Whole passes over all batches, in order, each batch on the instance that is free first.

    Passes follow one another; that some instances have nothing left at the end of each counts as it does in reality.

    Args:
        executor: What is measured.
        batches: At least one.
        limits: How long to measure; forwards are counted as the mean of the instances. One pass is always made.
        on_open: Called when the window opens, with nothing in flight.
        in_flight: Batches offered at a time; None for two an instance.

    Raises:
        WorkerError: An instance failed.
    """
    before = await _warm_up(executor, batches, limits)
    on_open()
    lanes: _Lanes = [[] for _ in range(executor.capacity)]
    offered = in_flight or executor.capacity * _IN_FLIGHT
    passes = await _repeat(lambda: _offline_pass(executor, batches, lanes, offered), lanes, limits)
    return _summary(
        before, lanes, list(batches) * passes, limits, [value for lane in lanes for value in occupied_ns(lane)]
    )


async def single_stream_texts(
    executor: Executor, batches: Sequence[TokenBatch], limits: Limits, on_open: Callable[[], None] = ignore
) -> Measurement:
    """Whole passes over all batches, in order, one at a time, its texts dealt out over the instances.

    The latency of a batch is that of its slowest part. Where it has fewer texts than there are instances, the last ones
    have nothing to do.

    Args:
        executor: What is measured.
        batches: At least one.
        limits: How long to measure; forwards are counted as the mean of the instances. One pass is always made.
        on_open: Called when the window opens, with nothing in flight.

    Raises:
        WorkerError: An instance failed.
    """
    rounds = [split_batch(batch, executor.capacity) for batch in batches]
    parts = [part for one in rounds for part in one]
    before = await _warm_up(executor, parts, limits)
    on_open()
    lanes: _Lanes = [[] for _ in range(executor.capacity)]
    latency_ns: list[int] = []

    async def one_pass() -> None:
        for one in rounds:
            results = await asyncio.gather(*(executor.submit(part, instance=index) for index, part in enumerate(one)))
            timings = [result.timing for result in results]
            latency_ns.append(span_ns(timings))
            for lane, timing in zip(lanes, timings, strict=False):  # instances without a part idle
                lane.append(timing)

    passes = await _repeat(one_pass, lanes, limits)
    return _summary(before, lanes, parts * passes, limits, latency_ns)


async def _warm_up(executor: Executor, batches: Sequence[TokenBatch], limits: Limits) -> Warmup:
    """Run the largest batch once, so that its memory is had, then a typical one until times have settled.

    Only times of equal batches can be compared with each other.
    """
    by_size = sorted(batches, key=lambda batch: batch.ids.size)
    largest, typical = by_size[-1], by_size[len(by_size) // 2]
    steadiness = [Steadiness(limits.warmup_max_s) for _ in range(executor.capacity)]

    async def one(index: int) -> list[BatchTiming]:
        timings = [(await executor.submit(largest, instance=index)).timing]
        while not all(each.over for each in steadiness):  # all stay loaded until the last has settled
            timing = (await executor.submit(typical, instance=index)).timing
            steadiness[index].reached(timing.finished_ns - timing.started_ns)
            timings.append(timing)
        return timings

    lanes = await asyncio.gather(*(one(index) for index in range(executor.capacity)))
    return warmup(lanes, steady=all(each.settled for each in steadiness))


async def _offline_pass(executor: Executor, batches: Sequence[TokenBatch], lanes: _Lanes, in_flight: int) -> None:
    waiting = iter(batches)
    failed = False

    async def feed() -> None:
        nonlocal failed
        for batch in waiting:
            if failed:
                return
            try:
                result = await executor.submit(batch)
            except BaseException:
                failed = True  # when one fails, the others stop as well
                raise
            lanes[result.instance].append(result.timing)

    await asyncio.gather(*(feed() for _ in range(in_flight)))


async def _repeat(one_pass: Callable[[], Awaitable[None]], lanes: _Lanes, limits: Limits) -> int:
    """Make passes until the window is over; return how many."""
    passes = 0
    while passes == 0 or not limits.over(_window_ns(lanes), _mean_forwards(lanes)):
        await one_pass()
        passes += 1
    return passes


def _summary(
    before: Warmup, lanes: _Lanes, batches: Sequence[TokenBatch], limits: Limits, latency_ns: Sequence[int]
) -> Measurement:
    window_ns = _window_ns(lanes)
    samples = sum(batch.size for batch in batches)
    return measurement(
        warmup=before,
        complete=window_ns >= limits.min_s * 1e9 and _mean_forwards(lanes) >= limits.min_forwards,
        opened_ns=_opened_ns(lanes),
        lanes=lanes,
        samples_per_s=samples / window_ns * 1e9,
        latency_ns=latency_ns,
        samples=samples,
        tokens=sum(batch.tokens for batch in batches),
        padded_tokens=sum(batch.ids.size for batch in batches),
    )


def _opened_ns(lanes: _Lanes) -> int:
    return first_submitted_ns(timing for lane in lanes for timing in lane)


def _window_ns(lanes: _Lanes) -> int:
    return last_done_ns(timing for lane in lanes for timing in lane) - _opened_ns(lanes)


def _mean_forwards(lanes: _Lanes) -> int:
    """Return the mean of the instances, rounded up: one pass is at least one forward."""
    return math.ceil(sum(map(len, lanes)) / len(lanes))
