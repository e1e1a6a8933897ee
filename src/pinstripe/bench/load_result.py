"""What became of the requests of a trial."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

import msgspec

from pinstripe.bench.measurement import Load
from pinstripe.bench.timings import bound_ms
from pinstripe.load import judge
from pinstripe.statistics import percentile

__all__ = ["STANDARD_CLASSES", "ClassLatency", "LoadResult", "load_result"]

STANDARD_CLASSES: Final = (32, 128, 512, None)
"""Most tokens of each length class where no groups of instances say others; None for the rest."""


class ClassLatency(msgspec.Struct, frozen=True, kw_only=True):
    """Latency of the requests whose longest text is in a length class.

    Attributes:
        max_tokens: Most tokens of the class, which begins where the one before ends; None for the rest.
        n: Number of these requests, at least 1.
        p50_ms: Median; infinite where so many failed, like the others.
        p99_ms: 99th percentile.
        p99_bound_ms: What the true one does not exceed with 95 % confidence; None for fewer than 299 requests.
    """

    max_tokens: int | None
    n: int
    p50_ms: float
    p99_ms: float
    p99_bound_ms: float | None


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the requests of a trial over its repeats.

    Attributes:
        offered_per_s: Requests that were due a second, median over the repeats; None in a closed loop.
        answered_per_s: Requests that were answered a second, likewise.
        failures: Number of the others by how they failed.
        p999_ms: 99.9th percentile of the latency; None for fewer than 1,000 requests.
        p999_bound_ms: What the true one does not exceed with 95 % confidence; None for fewer than 2,995.
        classes: Latency by length class, of the classes that have requests.
        lag_p99_ms: How late 1 % of the requests were sent, or later: the generator's fault; the worst of the repeats.
        cpu_share: CPU time of this process as a share of one CPU, likewise.
        saturated: Whether the instances fell behind in any repeat; None where that cannot be told of any.
        saturated_because: How that is known; None if it is not so.
        valid: Whether the instances were measured in all repeats, rather than the generator.
        invalid_because: Why not, in the repeat with the latest requests; None if it is.
        peak_per_s: The highest rate that keeps the bound, median over the repeats; None if it was not looked for.
    """

    offered_per_s: float | None
    answered_per_s: float
    failures: dict[str, int]
    p999_ms: float | None
    p999_bound_ms: float | None
    classes: tuple[ClassLatency, ...]
    lag_p99_ms: float
    cpu_share: float
    saturated: bool | None
    saturated_because: str | None
    valid: bool
    invalid_because: str | None
    peak_per_s: float | None


def load_result(loads: Sequence[Load], classes: Sequence[int | None]) -> LoadResult:
    """Sum up the requests of a trial's repeats.

    Args:
        loads: At least one.
        classes: Most tokens of each length class, ascending; None, for the rest, may be the last.
    """
    reports = [judge(one.run) for one in loads]
    late_first = sorted(reports, key=lambda report: report.lag_ms.p99 or 0.0, reverse=True)
    offered = [report.offered_per_s for report in reports if report.offered_per_s is not None]
    told = [report.saturated for report in reports if report.saturated is not None]
    peaks = [one.peak.rate_per_s for one in loads if one.peak and one.peak.rate_per_s is not None]
    latency_ns = [value for one in loads for value in one.latency_ns]
    return LoadResult(
        offered_per_s=median(offered) if offered else None,
        answered_per_s=median(report.completed_per_s for report in reports),
        failures=dict(sum((Counter(report.failures) for report in reports), Counter[str]())),
        p999_ms=percentile(latency_ns, 99.9) / 1e6 if len(latency_ns) >= 1000 else None,  # noqa: PLR2004 - one above it
        p999_bound_ms=bound_ms(latency_ns, 99.9),
        classes=tuple(_classes(loads, classes)),
        lag_p99_ms=max(report.lag_ms.p99 or 0.0 for report in reports),
        cpu_share=max(report.cpu_share for report in reports),
        saturated=any(told) if told else None,
        saturated_because=next((report.saturated_because for report in reports if report.saturated), None),
        valid=all(report.valid for report in reports),
        invalid_because=next((report.invalid_because for report in late_first if not report.valid), None),
        peak_per_s=median(peaks) if peaks else None,
    )


def _classes(loads: Sequence[Load], classes: Sequence[int | None]) -> Iterator[ClassLatency]:
    pairs = [pair for one in loads for pair in zip(one.tokens, one.latency_ns, strict=True)]
    above = 0.0
    for most in dict.fromkeys((*classes, None)):  # no length is left out
        last = math.inf if most is None else most
        values = [latency for tokens, latency in pairs if above < tokens <= last]
        above = last
        if values:
            yield ClassLatency(
                max_tokens=most,
                n=len(values),
                p50_ms=percentile(values, 50) / 1e6,
                p99_ms=percentile(values, 99) / 1e6,
                p99_bound_ms=bound_ms(values, 99),
            )
