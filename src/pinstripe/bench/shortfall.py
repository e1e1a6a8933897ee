"""Why was less measured than was asked for?"""

from collections.abc import Sequence

from pinstripe.bench.record import Record

__all__ = ["shortfall"]


def shortfall(records: Sequence[Record]) -> str | None:
    """Return why the first window of a trial that did not meet its minimums did not; None if all met them."""
    return next((_reason(record) for record in records if record.measurement and not record.measurement.complete), None)


def _reason(record: Record) -> str:
    arrivals, load = record.workload.arrivals, record.measurement and record.measurement.load
    asked = f"--min-forwards asks for {record.limits.min_forwards:,}"
    if arrivals and load:
        count = len(load.run.scheduled_ns)
        requests = "1 request" if count == 1 else f"{count:,} requests"
        if arrivals.trace and count == arrivals.trace.requests:
            return f"the trace has {requests}, {asked}"
        if arrivals.clients is not None:
            return f"the clients sent {requests} in {record.limits.min_s:g} s, {asked}; raise --min-time"
    return "the window's upper bound came before the least number of forwards; raise --max-time"
