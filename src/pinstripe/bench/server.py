"""Requests that arrive when they arrive, as MLPerf's server has it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pinstripe.bench.asking import Asking
from pinstripe.bench.measurement import Load, Measurement, Warmup, measurement
from pinstripe.bench.scenarios import Limits, ignore
from pinstripe.configuration import Arrivals
from pinstripe.dispatch import Dispatcher, loop_time_ns
from pinstripe.errors import ExecutionError
from pinstripe.load import LoadRun, Peak, find_peak, run_closed_loop, run_load, schedule
from pinstripe.models import EncodedText

__all__ = ["offsets_ns", "server"]

_BEGIN_CLIENTS: Final = 8
"""Clients for each instance in the closed loop whose rate the search for the highest one begins with."""
_BEGIN_S: Final = 1.0
_LEAST_REQUESTS: Final = 299
"""So many bound a 99th percentile."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What was asked, from when on, and what became of it."""

    asking: Asking
    opened_ns: int
    run: LoadRun


class _Target:
    """A dispatcher in this process as what a load is sent to."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def send(self, number: int) -> None:
        """Send a request; a worker that fails ends the run, as in every scenario."""
        await self._asking.ask(number)


async def server(
    dispatcher: Dispatcher,
    rows: Sequence[EncodedText],
    arrivals: Arrivals,
    limits: Limits,
    *,
    times: NDArray[np.int64] | None = None,
    on_open: Callable[[], None] = ignore,
) -> Measurement:
    """Send requests when they are to arrive; the latency of each counts from then, not from when it was sent.

    Where the arrivals name a bound of the p99 in place of a rate, the highest rate that keeps it is looked for, and
    what is measured is its confirmation; see `find_peak`.

    Args:
        dispatcher: What is measured.
        rows: The texts; at least one. Requests take them in this order, round and round.
        arrivals: When requests arrive.
        limits: How long they do, see `offsets_ns`; clients send theirs for `min_s`.
        times: Those of the trace, see `read_trace`; with trace arrivals only.
        on_open: Called when the window opens, with nothing in flight; at each rate that is tried.

    Raises:
        WorkerError: An instance failed.
        ExecutionError: No request was answered, or no rate keeps the bound.
    """
    warming = Asking(dispatcher, rows, arrivals.texts)
    before = await warming.warm_up(limits.warmup_max_s)

    async def run(run_target: Callable[[_Target], Awaitable[LoadRun]]) -> _Outcome:
        on_open()
        asking, opened_ns = Asking(dispatcher, rows, arrivals.texts), loop_time_ns()
        return _Outcome(asking, opened_ns, await run_target(_Target(asking)))

    if arrivals.p99_ms is not None:
        outcome, peak = await _highest(run, arrivals, arrivals.p99_ms, limits, dispatcher.capacity)
        return _measured(before, outcome, limits, peak)
    clients = arrivals.clients
    if clients is not None:
        return _measured(before, await run(lambda one: run_closed_loop(one, clients, seconds=limits.min_s)), limits)
    offsets = offsets_ns(arrivals, limits, times)
    return _measured(before, await run(lambda one: run_load(one, offsets.tolist())), limits)


def offsets_ns(arrivals: Arrivals, limits: Limits, times: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return when requests are sent.

    Args:
        arrivals: With a rate or a trace.
        limits: `min_s` seconds of arrivals, but `min_forwards` requests at least, and `max_s` seconds at most; a trace
            is sent to its end, or for `max_s`.
        times: Those of the trace.

    Raises:
        ConfigurationError: There are none, or more than can be kept.
    """
    if arrivals.rate_per_s is None or times is not None:
        return schedule(arrivals, limits.max_s, times)
    enough_s = (3 * limits.min_forwards + 10) / arrivals.rate_per_s  # with a probability of all but 10^-5
    offsets = schedule(arrivals, min(limits.max_s, max(limits.min_s, enough_s)))
    within = int(np.searchsorted(offsets, limits.min_s * 1e9))
    return offsets[: max(within, limits.min_forwards)]


async def _highest(
    run: Callable[[Callable[[_Target], Awaitable[LoadRun]]], Awaitable[_Outcome]],
    arrivals: Arrivals,
    p99_ms: float,
    limits: Limits,
    instances: int,
) -> tuple[_Outcome, Peak]:
    """Return the run at the highest rate that keeps a bound, and how it was found."""
    begin_s = min(_BEGIN_S, limits.min_s)
    begin = await run(lambda one: run_closed_loop(one, _BEGIN_CLIENTS * instances, seconds=begin_s))
    start_per_s = len(begin.run.scheduled_ns) / begin.run.elapsed_ns * 1e9
    requests = max(_LEAST_REQUESTS, limits.min_forwards, round(start_per_s * limits.min_s))
    outcome = begin

    async def run_at(rate_per_s: float, seed: int) -> LoadRun:
        nonlocal outcome
        at = replace(arrivals, rate_per_s=rate_per_s, p99_ms=None, seed=seed)
        offsets = schedule(at, requests=requests).tolist()
        outcome = await run(lambda one: run_load(one, offsets, p99_ms=p99_ms))
        return outcome.run

    peak = await find_peak(run_at, p99_ms, start_per_s=start_per_s, seed=arrivals.seed)
    if peak.rate_per_s is None:
        last = next(step for step in reversed(peak.steps) if step.because)
        raise ExecutionError(
            f"no rate keeps a p99 of {p99_ms:g} ms: at {last.rate_per_s:.3g}/s {last.because}; "
            "allow more, measure on a quiet machine, or look at a fixed --rate"
        )
    return outcome, peak


def _measured(before: Warmup, outcome: _Outcome, limits: Limits, peak: Peak | None = None) -> Measurement:
    asking, run = outcome.asking, outcome.run
    numbers = range(len(run.scheduled_ns))
    answered = [number for number in numbers if number not in run.failures]
    if not answered:
        reasons = ", ".join(dict.fromkeys(run.failures.values()))
        raise ExecutionError(f"none of {len(numbers)} requests was answered ({reasons}); lower the rate")
    window_ns = max(max(run.done_ns[number] for number in answered) - run.scheduled_ns[0], _offered_ns(run))
    return measurement(
        warmup=before,
        complete=len(numbers) >= limits.min_forwards,
        opened_ns=outcome.opened_ns,
        lanes=asking.lanes,
        samples_per_s=asking.samples / window_ns * 1e9,
        latency_ns=[run.done_ns[number] - run.scheduled_ns[number] for number in answered],
        samples=asking.samples,
        tokens=asking.tokens,
        padded_tokens=asking.padded_tokens,
        load=Load(run=run, tokens=tuple(max(asking.lengths(number)) for number in numbers), peak=peak),
    )


def _offered_ns(run: LoadRun) -> float:
    """Return the time that the requests of an open loop take to come, the gap after the last one included; else 0."""
    gaps = len(run.scheduled_ns) - 1
    if run.clients is not None or not gaps:
        return 0.0
    return (run.scheduled_ns[-1] - run.scheduled_ns[0]) * (gaps + 1) / gaps
