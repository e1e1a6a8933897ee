"""What a run says, and whether it may be believed."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal, get_args

import msgspec
from msgspec.structs import force_setattr

from pinstripe.load.run import LoadRun
from pinstripe.load.saturation import falls_behind
from pinstripe.statistics import percentile, percentile_rank_bound

__all__ = ["LoadPercentiles", "LoadReport", "judge"]

_PERCENTS: Final = (50.0, 90.0, 95.0, 99.0, 99.9)
_Name = Literal["p50", "p90", "p95", "p99", "p999"]
_NEVER_NS: Final = 1 << 62
"""The latency of a failed request: later than any other."""
_LAG_NS: Final = 1_000_000
_LAG_SHARE: Final = 0.05
_CPU_SHARE: Final = 0.8


class LoadPercentiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Percentiles of a time by nearest rank, in milliseconds; infinite where so many requests failed.

    Attributes:
        p50: The median.
        p90: 90th percentile.
        p95: 95th percentile.
        p99: 99th percentile.
        p999: 99.9th percentile.
        infinite: Those that are infinite, which JSON has no number for and writes as null, like those that are unknown;
            reading makes them infinite again.
    """

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    infinite: tuple[_Name, ...] = ()

    def __post_init__(self) -> None:
        """Restore what was null in JSON."""
        for name in self.infinite:
            force_setattr(self, name, math.inf)


class LoadReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run says.

    Attributes:
        requests: Number of requests, all that were due until the run ended.
        answered: How many of them were answered as they should be.
        failures: Number of the others by how they failed.
        offered_per_s: Requests that were due a second; None for a closed loop and for a single request.
        completed_per_s: Requests that were answered a second, until the last was due and sent; until the last answer
            where none was answered before that, and in a closed loop.
        latency_ms: From the time at which a request was due; failed ones are infinitely late.
        latency_bound_ms: What the true percentiles do not exceed with 95 % confidence each; None where there are too
            few requests for any bound: p99 needs 299. Optimistic where requests wait for each other.
        service_ms: From the time at which it was sent.
        lag_ms: How long after it was due a request was sent; of the generator, not of the server.
        cpu_share: CPU time of the generator, as a share of one CPU.
        most_in_flight: Most requests that were under way at a time.
        clients: Of a closed loop, whose latencies are no measure of what users would see; None for an open one.
        saturated: Whether the server fell behind for good; None where that cannot be told: in a closed loop, and with
            fewer than 1,000 answers.
        saturated_because: How that is known; None if it is not so.
        valid: Whether the server was measured, rather than the generator.
        invalid_because: Why not; None if it is.
        end: How the run ended, see `LoadRun`.
    """

    requests: int
    answered: int
    failures: dict[str, int]
    offered_per_s: float | None
    completed_per_s: float
    latency_ms: LoadPercentiles
    latency_bound_ms: LoadPercentiles
    service_ms: LoadPercentiles
    lag_ms: LoadPercentiles
    cpu_share: float
    most_in_flight: int
    clients: int | None
    saturated: bool | None
    saturated_because: str | None
    valid: bool
    invalid_because: str | None
    end: str


def judge(run: LoadRun) -> LoadReport:
    """Return what a run says, and whether it may be believed.

    A run is not valid if the generator mattered: the median or the 99th percentile of its lag is above 1 ms and above
    5 % of the same percentile of the latency, or it used more than 80 % of a CPU. Latencies count from the scheduled
    time, so that a lag below that makes neither percentile more than 5 % too high. Where so many failed that the
    percentile is infinite, that of the answered requests stands for it.

    Args:
        run: Of at least one request.
    """
    closed = run.clients is not None
    latencies = sorted(_times(run, run.scheduled_ns))
    lags = sorted(sent - scheduled for sent, scheduled in zip(run.sent_ns, run.scheduled_ns, strict=True))
    n = len(latencies)
    answered = n - len(run.failures)
    cpu_share = run.cpu_ns / run.elapsed_ns if run.elapsed_ns else 0.0
    invalid = _invalid(latencies, lags, cpu_share)
    saturated, because = (None, None) if closed else _saturated(run)
    span_ns = run.scheduled_ns[-1] - run.scheduled_ns[0]
    return LoadReport(
        requests=n,
        answered=answered,
        failures=dict(Counter(run.failures.values()).most_common()),
        offered_per_s=None if closed or span_ns == 0 else (n - 1) / span_ns * 1e9,
        completed_per_s=_completed_per_s(run),
        latency_ms=_percentiles(latencies),
        latency_bound_ms=_bounds(latencies),
        service_ms=_percentiles(sorted(_times(run, run.sent_ns))),
        lag_ms=_percentiles(lags),
        cpu_share=cpu_share,
        most_in_flight=run.most_in_flight,
        clients=run.clients,
        saturated=saturated,
        saturated_because=because,
        valid=invalid is None,
        invalid_because=invalid,
        end=run.end,
    )


def _times(run: LoadRun, from_ns: Sequence[int]) -> list[int]:
    pairs = zip(run.done_ns, from_ns, strict=True)
    return [_NEVER_NS if number in run.failures else done - begun for number, (done, begun) in enumerate(pairs)]


def _ms(value_ns: int) -> float:
    return math.inf if value_ns == _NEVER_NS else value_ns / 1e6


def _percentiles(ordered_ns: Sequence[int]) -> LoadPercentiles:
    return _named(_ms(percentile(ordered_ns, percent)) for percent in _PERCENTS)


def _bounds(ordered_ns: Sequence[int]) -> LoadPercentiles:
    ranks = (percentile_rank_bound(len(ordered_ns), percent) for percent in _PERCENTS)
    return _named(None if rank is None else _ms(ordered_ns[rank - 1]) for rank in ranks)


def _named(values: Iterable[float | None]) -> LoadPercentiles:
    named = dict(zip(get_args(_Name), values, strict=True))
    return LoadPercentiles(**named, infinite=tuple(name for name, value in named.items() if value == math.inf))


def _completed_per_s(run: LoadRun) -> float:
    begin_ns = run.scheduled_ns[0]
    end_ns = max(run.scheduled_ns[-1], run.sent_ns[-1]) if run.clients is None else run.elapsed_ns
    answered_ns = [done for number, done in enumerate(run.done_ns) if number not in run.failures]
    count = sum(done <= end_ns for done in answered_ns)
    if end_ns == begin_ns or not count:
        end_ns, count = max(answered_ns, default=begin_ns), len(answered_ns)
    return count / (end_ns - begin_ns) * 1e9 if end_ns > begin_ns else 0.0


def _invalid(latencies_ns: Sequence[int], lags_ns: Sequence[int], cpu_share: float) -> str | None:
    if cpu_share > _CPU_SHARE:
        return f"the generator used {cpu_share:.0%} of a CPU, above 80 %: it was measured, not the server"
    finite_ns = latencies_ns[: bisect_left(latencies_ns, _NEVER_NS)]
    for percent in (50, 99):
        lag_ns, latency_ns = percentile(lags_ns, percent), percentile(latencies_ns, percent)
        if latency_ns == _NEVER_NS:
            latency_ns = percentile(finite_ns, percent) if finite_ns else 0
        if lag_ns > max(_LAG_NS, _LAG_SHARE * latency_ns):
            return (
                f"the generator sent {100 - percent} % of the requests {lag_ns / 1e6:.1f} ms late or more, above 1 ms "
                f"and 5 % of the p{percent} of the latency: it was measured, not the server"
            )
    return None


def _saturated(run: LoadRun) -> tuple[bool | None, str | None]:
    if run.end == "capped":
        return True, f"{run.most_in_flight:,} requests were under way, the most that may be, so no more were sent"
    # A request that ran into its timeout was at least so late; how late others would have been is not known.
    times = zip(run.scheduled_ns, run.done_ns, strict=True)
    known = [done - due for number, (due, done) in enumerate(times) if run.failures.get(number, "timeout") == "timeout"]
    behind = falls_behind(known)
    return behind, (
        "the queue grew through the run: requests came faster than they were answered, so its percentiles are those of "
        "its length, and a longer run would show higher ones"
        if behind
        else None
    )
