"""Records of one trial, summed up."""

from collections.abc import Sequence
from statistics import median
from typing import Final

import msgspec

from pinstripe.bench.comparison import Ratio, paired_ratio
from pinstripe.bench.disturbances import Disturbances, disturbances
from pinstripe.bench.load_result import STANDARD_CLASSES, LoadResult, load_result
from pinstripe.bench.measurement import Measurement
from pinstripe.bench.record import Record, trial_key
from pinstripe.bench.shortfall import shortfall
from pinstripe.bench.timings import bound_ms
from pinstripe.bench.watch import Surroundings
from pinstripe.configuration import Configuration, Workload
from pinstripe.pool import InstanceEvidence
from pinstripe.statistics import count_outliers, percentile

__all__ = ["LatencyBoundMs", "LatencyMs", "Result", "Trial", "summarize"]

_PERCENTS: Final = (50, 90, 95, 99)


class LatencyMs(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of the raw latencies, in milliseconds, by nearest rank."""

    p50: float
    p90: float
    p95: float
    p99: float


class LatencyBoundMs(msgspec.Struct, frozen=True, kw_only=True):
    """What the true percentiles do not exceed with 95 % confidence each, in milliseconds.

    None where there are too few values for any bound: p50 needs 5, p90 29, p95 59, p99 299.
    """

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial came to over its repeats.

    Attributes:
        samples_per_s: Median over the repeats.
        tokens_per_s: Likewise, real tokens.
        latency_ms: Percentiles of the pooled raw values; infinite where so many requests failed.
        latency_bound_ms: Upper bounds of these percentiles.
        n: Number of these values.
        outliers: Those more than 14.8 median absolute deviations from their repeat's median; they count like the rest.
        padding_fraction: Share of the computed tokens that was padding.
        rss_bytes: Resident memory of all instances; pages they share count in each.
        engine_ms: Median duration of a forward pass.
        pool_ms: Median time of a batch outside the worker.
        repeats: Samples per second of each repeat.
        ratio: Samples per second, or where requests arrive by themselves the reciprocals of the 99th percentiles,
            compared with the first configuration under the same workload; None for that itself, or where no round has
            both.
        complete: Whether every window met its minimums and, where requests arrive, is valid.
        incomplete_because: Which minimum was not met, and why; None if all were.
        steady: Whether every warm-up had settled.
        parent_cpu: Largest share of one CPU that the parent used in any repeat; above one half the pool is near its
            ceiling.
        disturbances: What the machine did to the measurement.
        page_faults_per_forward: Page faults of a forward pass in the windows, median over the repeats: memory that was
            given back to the kernel and had to be got again. None where the kernel does not say.
        gflops: 10^9 floating-point operations a second for matrix products, padding not counted, the median over the
            repeats; None where they cannot be counted.
        peak_gflops: What the same cores gave for large matrix products just before, likewise; None if not measured.
        peak_share: Median of the repeats' shares of their peaks. Above 1 the peak was measured badly.
        load: What became of the requests of the server scenario; None in others.
    """

    samples_per_s: float
    tokens_per_s: float
    latency_ms: LatencyMs
    latency_bound_ms: LatencyBoundMs
    n: int
    outliers: int
    padding_fraction: float
    rss_bytes: int | None
    engine_ms: float
    pool_ms: float
    repeats: tuple[float, ...]
    ratio: Ratio | None
    complete: bool
    incomplete_because: str | None
    steady: bool
    parent_cpu: float
    disturbances: Disturbances
    page_faults_per_forward: float | None
    gflops: float | None
    peak_gflops: float | None
    peak_share: float | None
    load: LoadResult | None


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
        records: Records of one run; repeats of a trial are found by equal configuration and workload. Those of one
            subject are compared with the first of them: the same shape, or the same texts however they are batched.
    """
    groups: dict[bytes, list[Record]] = {}
    for record in records:
        groups.setdefault(trial_key(record.configuration, record.workload), []).append(record)
    base: dict[str, list[Record]] = {}
    trials = []
    classes = _classes(records)
    for group in groups.values():
        first = base.setdefault(group[0].workload.subject, group)
        trials.append(_trial(group, None if first is group else first, classes))
    return trials


def _classes(records: Sequence[Record]) -> tuple[int | None, ...]:
    """Return the length classes of the first groups of instances, so that all trials can be compared by them."""
    groups = next((record.configuration.groups for record in records if record.configuration.groups), ())
    return tuple(group.max_tokens for group in groups) or STANDARD_CLASSES


def _trial(records: Sequence[Record], base: Sequence[Record] | None, classes: Sequence[int | None]) -> Trial:
    with_evidence = [record.evidence for record in records if record.evidence]
    return Trial(
        model=records[0].network.name,
        configuration=records[0].configuration,
        workload=records[0].workload,
        result=_result(records, base, classes),
        failures=tuple(record.failure.message for record in records if record.failure),
        evidence=with_evidence[-1] if with_evidence else (),
    )


def _result(records: Sequence[Record], base: Sequence[Record] | None, classes: Sequence[int | None]) -> Result | None:
    measurements = [record.measurement for record in records if record.measurement]
    if not measurements:
        return None
    latency_ns = [value for one in measurements for value in _latency_ns(one)]
    loads = [one.load for one in measurements if one.load]
    load = load_result(loads, classes) if loads else None
    return Result(
        samples_per_s=median(one.samples_per_s for one in measurements),
        tokens_per_s=median(one.tokens_per_s for one in measurements),
        latency_ms=LatencyMs(**{f"p{percent}": percentile(latency_ns, percent) / 1e6 for percent in _PERCENTS}),
        latency_bound_ms=LatencyBoundMs(**{f"p{percent}": bound_ms(latency_ns, percent) for percent in _PERCENTS}),
        n=len(latency_ns),
        # Batches of texts take different times by nature, and so do requests that wait for each other.
        outliers=0
        if records[0].workload.texts or load
        else sum(count_outliers(one.latency_ns) for one in measurements),
        padding_fraction=measurements[-1].padding_fraction,
        rss_bytes=_rss_bytes(records),
        engine_ms=median(value for one in measurements for lane in one.engine_ns for value in lane) / 1e6,
        pool_ms=median(value for one in measurements for lane in one.pool_ns for value in lane) / 1e6,
        repeats=tuple(one.samples_per_s for one in measurements),
        ratio=None if base is None else _ratio(records, base),
        complete=all(one.complete for one in measurements) and (load is None or load.valid),
        incomplete_because=shortfall(records),
        steady=all(one.warmup.steady for one in measurements),
        parent_cpu=max(_parent_cpu(record.surroundings) for record in records if record.surroundings),
        disturbances=disturbances(records),
        page_faults_per_forward=_page_faults_per_forward(records),
        load=load,
        **_gflops(records),
    )


def _latency_ns(measured: Measurement) -> Sequence[float]:
    return measured.latency_ns if measured.load is None else measured.load.latency_ns


def _parent_cpu(seen: Surroundings) -> float:
    return seen.parent_cpu_ns / seen.elapsed_ns


def _page_faults_per_forward(records: Sequence[Record]) -> float | None:
    seen = [record.surroundings for record in records if record.surroundings and record.measurement]
    rates = [
        (one.minor_faults + one.major_faults) / one.window_forwards
        for one in seen
        if one.minor_faults is not None and one.major_faults is not None and one.window_forwards
    ]
    return median(rates) if rates else None


def _gflops(records: Sequence[Record]) -> dict[str, float | None]:
    rates = [
        (one.measurement.samples_per_s * one.sample_flops / 1e9, one.peak.gflops if one.peak else None)
        for one in records
        if one.measurement and one.sample_flops
    ]
    with_peak = [(rate, peak) for rate, peak in rates if peak is not None]
    return {
        "gflops": median(rate for rate, _ in rates) if rates else None,
        "peak_gflops": median(peak for _, peak in with_peak) if with_peak else None,
        "peak_share": median(rate / peak for rate, peak in with_peak) if with_peak else None,
    }


def _rss_bytes(records: Sequence[Record]) -> int | None:
    totals = [sum(one.process.rss_bytes for one in record.evidence) for record in records if record.evidence]
    return max(totals, default=None)


def _ratio(records: Sequence[Record], base: Sequence[Record]) -> Ratio | None:
    base_speeds = {one.repeat: speed for one in base if (speed := _speed(one))}
    pairs = [
        (speed, base_speeds[one.repeat]) for one in records if (speed := _speed(one)) and one.repeat in base_speeds
    ]
    return paired_ratio([speed for speed, _ in pairs], [base for _, base in pairs]) if pairs else None


def _speed(record: Record) -> float | None:
    """Return what is the better the larger it is: the rate or, where that is given, the reciprocal of the p99."""
    measured, arrivals = record.measurement, record.workload.arrivals
    if measured is None:
        return None
    if arrivals is None or arrivals.clients is not None or arrivals.p99_ms is not None:
        return measured.samples_per_s
    return 1e9 / percentile(_latency_ns(measured), 99)
