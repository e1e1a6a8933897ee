"""One run of requests, and the raw times that it leaves."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import UsageError
from pinstripe.load.flight import End, Flight
from pinstripe.load.target import Target

__all__ = ["LoadRun", "run_closed_loop", "run_load"]

_PERCENT: Final = 99
_MOST_REQUESTS: Final = 5_000_000
_AT_ONCE: Final = 64
"""Most requests that are sent before the loop turns to anything else."""


class LoadRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Raw times of the requests of one run, as offsets from its begin in nanoseconds [requests].

    Attributes:
        planned: Requests that it would have had; more than it has if it ended early. None for a closed loop that was
            bounded by time.
        clients: Of a closed loop; None for an open one.
        scheduled_ns: When each should have been sent; in a closed loop, when it was.
        sent_ns: When each was sent.
        done_ns: When each was answered, or given up.
        failures: How requests failed, by their number from 0; all others were answered.
        most_in_flight: Most requests that were under way at a time.
        elapsed_ns: From the begin until the last answer.
        cpu_ns: CPU time of this process meanwhile.
        end: `complete`. `capped`: so many requests were under way that no more were sent. `hopeless`: the bound on the
            99th percentile could not be kept any more, whatever the answers to the rest. `stopped`: from outside.
    """

    planned: int | None
    clients: int | None
    scheduled_ns: tuple[int, ...]
    sent_ns: tuple[int, ...]
    done_ns: tuple[int, ...]
    failures: dict[int, str]
    most_in_flight: int
    elapsed_ns: int
    cpu_ns: int
    end: End


async def run_load(
    target: Target,
    offsets_ns: NDArray[np.int64] | Sequence[int],
    *,
    timeout_s: float = 30.0,
    cap: int = 10_000,
    p99_ms: float | None = None,
    stop: asyncio.Event | None = None,
    on_sent: Callable[[int], None] | None = None,
    cpu_ns: Callable[[], int] = time.process_time_ns,
) -> LoadRun:
    """Send requests at fixed times, whether or not those before are answered (an open loop).

    No request waits for another: if `cap` of them are under way, the run ends. When the last is sent, the answers that
    are under way are waited for, none longer than its timeout. The clock is the loop's, so that virtual time will do.

    Args:
        target: What answers.
        offsets_ns: When to send each, from `schedule`; at least one.
        timeout_s: After how many seconds from being sent a request has failed, as `timeout`; above 0.
        cap: Most requests under way, at least 1.
        p99_ms: End as soon as the 99th percentile of all planned requests must be above this: when 1 % of them and one
            more are late already. None for never.
        stop: Ends it when it is set; answers under way are waited for, up to 2 s.
        on_sent: Called with the number of requests so far, after each few.
        cpu_ns: Clock of the CPU time that the generator uses.

    Raises:
        Exception: What the target raised, other than a `RequestError`.
    """
    offsets = [int(offset) for offset in offsets_ns]
    begun_cpu_ns = cpu_ns()
    flight = Flight(target, len(offsets), timeout_s)
    late = None if p99_ms is None else _Late(flight, offsets, round(p99_ms * 1e6))

    def send_due() -> None:
        first = flight.sent
        while flight.sent < len(offsets) and offsets[flight.sent] <= flight.now_ns():
            if flight.in_flight >= cap:
                return flight.finish("capped")
            flight.launch()
            if flight.sent - first == _AT_ONCE:  # answers have their turn as well
                break
        if on_sent is not None:
            on_sent(flight.sent)
        if late is not None and late.too_many():
            return flight.finish("hopeless")
        if flight.sent == len(offsets):
            return flight.finish("complete")
        return flight.call_at(offsets[flight.sent], send_due)

    await flight.run(send_due, stop)
    return _result(flight, planned=len(offsets), clients=None, scheduled_ns=offsets, cpu_ns=cpu_ns() - begun_cpu_ns)


async def run_closed_loop(
    target: Target,
    clients: int,
    *,
    seconds: float | None = None,
    requests: int | None = None,
    timeout_s: float = 30.0,
    stop: asyncio.Event | None = None,
    on_sent: Callable[[int], None] | None = None,
    cpu_ns: Callable[[], int] = time.process_time_ns,
) -> LoadRun:
    """Let a number of clients send one request after the other, each when the one before is answered.

    A slow server gets fewer requests of such clients, so their latencies say little of what users who arrive by
    themselves would see.

    Args:
        target: What answers.
        clients: How many, at least 1.
        seconds: After which nothing is sent any more; None for no such end.
        requests: How many are sent in all; None for no such end.
        timeout_s: As in `run_load`, like the others.
        stop: Likewise.
        on_sent: Likewise.
        cpu_ns: Likewise.

    Raises:
        UsageError: There is neither end.
        Exception: What the target raised, other than a `RequestError`.
    """
    if seconds is None and requests is None:
        raise UsageError("a closed loop has no end by itself; name its seconds or its requests")
    begun_cpu_ns = cpu_ns()
    flight = Flight(target, min(requests or _MOST_REQUESTS, _MOST_REQUESTS), timeout_s)
    end_ns = math.inf if seconds is None else seconds * 1e9

    async def client() -> None:
        while flight.can_send and flight.now_ns() < end_ns:
            await flight.send()
            if on_sent is not None:
                on_sent(flight.sent)

    def begin() -> None:
        for _ in range(clients):
            flight.start(client())
        flight.finish("complete")

    await flight.run(begin, stop)
    return _result(
        flight, planned=requests, clients=clients, scheduled_ns=flight.sent_ns, cpu_ns=cpu_ns() - begun_cpu_ns
    )


class _Late:
    """How many requests were not answered within a bound."""

    def __init__(self, flight: Flight, offsets_ns: Sequence[int], bound_ns: int) -> None:
        self._flight = flight
        self._offsets_ns = offsets_ns
        self._bound_ns = bound_ns
        self._judged = self._late = 0
        self._allowed = len(offsets_ns) - math.ceil(len(offsets_ns) * _PERCENT / 100)

    def too_many(self) -> bool:
        """Return whether more are late than the percentile leaves room for, whatever becomes of the rest.

        Each is judged once, when its time is over: it is late if it has not been answered by then.
        """
        now_ns = self._flight.now_ns()
        while self._judged < self._flight.sent and self._offsets_ns[self._judged] + self._bound_ns < now_ns:
            latency_ns = self._flight.latency_ns(self._judged, self._offsets_ns[self._judged])
            self._late += latency_ns is None or latency_ns > self._bound_ns
            self._judged += 1
        return self._late > self._allowed


def _result(
    flight: Flight, *, planned: int | None, clients: int | None, scheduled_ns: Sequence[int], cpu_ns: int
) -> LoadRun:
    # What was cut off before it had begun to be sent is no request.
    sent = next((number for number in range(flight.sent) if not flight.done_ns[number]), flight.sent)
    done_ns = tuple(flight.done_ns[:sent])
    return LoadRun(
        planned=planned,
        clients=clients,
        scheduled_ns=tuple(scheduled_ns[:sent]),
        sent_ns=tuple(flight.sent_ns[:sent]),
        done_ns=done_ns,
        failures={number: kind for number, kind in sorted(flight.failures.items()) if number < sent},
        most_in_flight=flight.most_in_flight,
        elapsed_ns=max(done_ns, default=0),
        cpu_ns=cpu_ns,
        end=flight.end,
    )
