"""Records of one trial, summed up."""

from collections.abc import Sequence
from statistics import median

import msgspec

from pinstripe.bench.record import Record
from pinstripe.bench.statistics import Ratio, paired_ratio, percentile
from pinstripe.configuration import Configuration, Workload
from pinstripe.pool import InstanceEvidence

__all__ = ["LatencyMs", "Result", "Trial", "summarize"]


class LatencyMs(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of the raw latencies, in milliseconds, by nearest rank."""

    p50: float
    p90: float
    p99: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial came to over its repeats.

    Attributes:
        samples_per_s: Median over the repeats.
        tokens_per_s: Likewise, real tokens.
        latency_ms: Percentiles of the pooled raw values.
        n: Number of these values.
        padding_fraction: Share of the computed tokens that was padding.
        rss_bytes: Resident memory of all instances; pages they share count in each.
        engine_ms: Median duration of a forward pass.
        pool_ms: Median time of a batch outside the worker.
        repeats: Samples per second of each repeat.
        ratio: Samples per second compared with the first configuration under the same workload; None for that itself,
            or where no round has both.
        complete: Whether every window met its minimums.
        steady: Whether every warm-up had settled.
        suspended_s: Seconds in which the parent seems to have been suspended, over the repeats.
        parent_cpu: Largest share of one CPU that the parent used in any repeat; above one half the pool is near its
            ceiling.
        throttled: Whether control groups held the instances back in any repeat; None where the kernel does not say.
    """

    samples_per_s: float
    tokens_per_s: float
    latency_ms: LatencyMs
    n: int
    padding_fraction: float
    rss_bytes: int | None
    engine_ms: float
    pool_ms: float
    repeats: tuple[float, ...]
    ratio: Ratio | None
    complete: bool
    steady: bool
    suspended_s: float
    parent_cpu: float
    throttled: bool | None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration under a workload, with what came of it.

    Attributes:
        model: The model, as the user named it.
        configuration: How it ran.
        workload: What was asked of it.
        result: What it came to; None if no repeat succeeded.
        failures: Why repeats failed.
        evidence: What took effect in each instance, of the last repeat that has it.
    """

    model: str
    configuration: Configuration
    workload: Workload
    result: Result | None
    failures: tuple[str, ...]
    evidence: tuple[InstanceEvidence, ...]


def summarize(records: Sequence[Record]) -> list[Trial]:
    """Return the trials of one run, in order of their first records.

    Args:
        records: Records of one run; repeats of a trial are found by equal configuration and workload.
    """
    groups: dict[bytes, list[Record]] = {}
    for record in records:
        key = msgspec.json.encode((record.configuration, record.workload))
        groups.setdefault(key, []).append(record)
    base: dict[bytes, list[Record]] = {}
    trials = []
    for group in groups.values():
        first = base.setdefault(msgspec.json.encode(group[0].workload), group)
        trials.append(_trial(group, None if first is group else first))
    return trials


def _trial(records: Sequence[Record], base: Sequence[Record] | None) -> Trial:
    with_evidence = [record.evidence for record in records if record.evidence]
    return Trial(
        model=records[0].network.name,
        configuration=records[0].configuration,
        workload=records[0].workload,
        result=_result(records, base),
        failures=tuple(record.failure.message for record in records if record.failure),
        evidence=with_evidence[-1] if with_evidence else (),
    )


def _result(records: Sequence[Record], base: Sequence[Record] | None) -> Result | None:
    measurements = [record.measurement for record in records if record.measurement]
    if not measurements:
        return None
    latency_ns = [value for one in measurements for value in one.latency_ns]
    throttled = [
        record.counters.nr_throttled > 0
        for record in records
        if record.counters and record.counters.nr_throttled is not None
    ]
    return Result(
        samples_per_s=median(one.samples_per_s for one in measurements),
        tokens_per_s=median(one.tokens_per_s for one in measurements),
        latency_ms=LatencyMs(
            p50=percentile(latency_ns, 50) / 1e6,
            p90=percentile(latency_ns, 90) / 1e6,
            p99=percentile(latency_ns, 99) / 1e6,
        ),
        n=len(latency_ns),
        padding_fraction=measurements[-1].padding_fraction,
        rss_bytes=_rss_bytes(records),
        engine_ms=median(value for one in measurements for lane in one.engine_ns for value in lane) / 1e6,
        pool_ms=median(value for one in measurements for lane in one.pool_ns for value in lane) / 1e6,
        repeats=tuple(one.samples_per_s for one in measurements),
        ratio=None if base is None else _ratio(records, base),
        complete=all(one.complete for one in measurements),
        steady=all(one.warmup.steady for one in measurements),
        suspended_s=sum(record.suspended_s for record in records if record.suspended_s is not None),
        parent_cpu=max(record.parent_cpu for record in records if record.parent_cpu is not None),
        throttled=any(throttled) if throttled else None,
    )


def _rss_bytes(records: Sequence[Record]) -> int | None:
    totals = [sum(one.process.rss_bytes for one in record.evidence) for record in records if record.evidence]
    return max(totals, default=None)


def _ratio(records: Sequence[Record], base: Sequence[Record]) -> Ratio | None:
    base_rates = {one.repeat: one.measurement.samples_per_s for one in base if one.measurement}
    pairs = [
        (one.measurement.samples_per_s, base_rates[one.repeat])
        for one in records
        if one.measurement and one.repeat in base_rates
    ]
    return paired_ratio([rate for rate, _ in pairs], [base for _, base in pairs]) if pairs else None
