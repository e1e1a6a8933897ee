"""What a run says, by arithmetic."""

import math

import msgspec
import pytest
from msgspec.structs import replace

from pinstripe.load import LoadReport, LoadRun, judge

MS = 1_000_000


def _run(
    latencies_ms: list[float], *, lags_ms: list[float] | None = None, cpu_ns: int = 0, gap_ms: int = 10
) -> LoadRun:
    due = [number * gap_ms * MS for number in range(len(latencies_ms))]
    lags = lags_ms or [0.0] * len(due)
    done = [round(begin + latency * MS) for begin, latency in zip(due, latencies_ms, strict=True)]
    return LoadRun(
        planned=len(due),
        clients=None,
        scheduled_ns=tuple(due),
        sent_ns=tuple(round(begin + lag * MS) for begin, lag in zip(due, lags, strict=True)),
        done_ns=tuple(done),
        failures={},
        most_in_flight=1,
        elapsed_ns=max(done),
        cpu_ns=cpu_ns,
        end="complete",
    )


def test_percentiles_by_nearest_rank() -> None:
    """Of 1 to 1,000 ms, p is the value of rank ⌈10 p⌉; the bounds have the ranks of the binomial distribution."""
    report = judge(_run([float(1000 - number) for number in range(1000)], gap_ms=2000))

    times, bounds = report.latency_ms, report.latency_bound_ms
    assert (times.p50, times.p90, times.p95, times.p99, times.p999) == (500, 900, 950, 990, 999)
    # The 5th highest of 1,000 bounds the 99th percentile with 95 % confidence (Hahn and Meeker); p99.9 needs 2,995.
    assert bounds.p99 == 996
    assert bounds.p999 is None
    assert report.offered_per_s == pytest.approx(0.5)


def test_latency_counts_from_the_scheduled_time_and_service_from_the_sent_one() -> None:
    """Sent 3 ms late and answered 7 ms after that: 10 ms, of which 7 are the server's."""
    report = judge(_run([10.0] * 400, lags_ms=[3.0] * 400))

    assert report.latency_ms.p50 == 10
    assert report.service_ms.p50 == 7
    assert report.lag_ms.p99 == 3


@pytest.mark.parametrize(
    ("latency_ms", "lag_ms", "valid"), [(10.0, 0.9, True), (10.0, 1.1, False), (100.0, 4.9, True), (100.0, 5.1, False)]
)
def test_a_generator_that_lags_makes_a_run_invalid(latency_ms: float, lag_ms: float, *, valid: bool) -> None:
    """Above 1 ms and above 5 % of the latency, for more than 1 % of the requests."""
    lags = [lag_ms if number < 11 else 0.0 for number in range(1000)]

    report = judge(_run([latency_ms] * 1000, lags_ms=lags))

    assert report.valid is valid
    assert (report.invalid_because is None) is valid
    assert judge(_run([latency_ms] * 1000, lags_ms=[*lags[1:], 0.0])).valid  # 10 of 1,000 are not more than 1 %


def test_a_lag_matters_where_it_is_part_of_the_percentile() -> None:
    """4 ms in 1 of 50 requests: nothing beside a p99 of 100 ms, though the median is 10 ms; much in half of them."""
    latencies = [100.0 if number % 50 == 0 else 10.0 for number in range(1000)]
    rare = [4.0 if number % 50 == 0 else 0.0 for number in range(1000)]

    assert judge(_run(latencies, lags_ms=rare)).valid

    report = judge(_run(latencies, lags_ms=[0.0 if number % 3 == 0 else 4.0 for number in range(1000)]))
    assert not report.valid
    assert "5 % of the p50 of the latency" in str(report.invalid_because)


def test_a_generator_that_is_busy_makes_a_run_invalid() -> None:
    """10 s with 8.5 s of CPU time say more of the generator than of the server."""
    assert judge(_run([5.0] * 1000, cpu_ns=7_900 * MS)).valid
    report = judge(_run([5.0] * 1000, cpu_ns=8_500 * MS))
    assert not report.valid
    assert "85% of a CPU" in str(report.invalid_because)


def test_a_run_in_which_all_fails() -> None:
    """No division by zero, and infinity everywhere."""
    run = _run([5.0] * 500)
    failed = dict.fromkeys(range(500), "connection refused")
    report = judge(LoadRun(**{name: getattr(run, name) for name in run.__struct_fields__} | {"failures": failed}))

    assert report.latency_ms.p50 == math.inf
    assert report.completed_per_s == 0
    assert report.answered == 0
    assert report.saturated is None


def test_a_single_request() -> None:
    """It has no rate, and no bound."""
    report = judge(_run([5.0]))

    assert report.offered_per_s is None
    assert report.latency_ms.p999 == 5
    assert report.latency_bound_ms.p50 is None


def test_failures_excuse_no_lag() -> None:
    """5 % of infinity is infinite; what counts is the latency of what was answered, and above 1 ms if nothing was."""
    late = _run([12_000.0] * 1000, lags_ms=[11_000.0] * 1000, gap_ms=1)

    assert not judge(replace(late, failures=dict.fromkeys(range(600), "timeout"))).valid
    assert not judge(replace(late, failures=dict.fromkeys(range(1000), "timeout"))).valid

    little = _run([100.0] * 1000, lags_ms=[4.0] * 1000)  # below 5 % of the 100 ms of the answered ones
    assert judge(replace(little, failures=dict.fromkeys(range(600), "timeout"))).valid


@pytest.mark.parametrize(
    ("due_ms", "sent_ms", "done_ms", "per_s"),
    [
        ([0, 500, 1000], [0, 500, 1000], [100, 600, 1100], 2.0),  # 2 within the second in which they were due
        ([0, 5, 10], [0, 1000, 2000], [500, 1500, 2500], 1.0),  # sent late: 2 within 2 s
        ([0, 0, 0, 0], [0, 0, 0, 0], [250, 500, 750, 1000], 4.0),  # all at once: 4 until the last answer
        ([0], [0], [200], 5.0),
        ([0, 10], [0, 10], [500, 1000], 2.0),  # none while others were due
    ],
)
def test_answers_a_second(due_ms: list[int], sent_ms: list[int], done_ms: list[int], per_s: float) -> None:
    """Until the last was due and sent; until the last answer, where that says nothing."""
    due, sent, done = (tuple(ms * MS for ms in times) for times in (due_ms, sent_ms, done_ms))
    run = replace(_run([1.0]), scheduled_ns=due, sent_ns=sent, done_ns=done, elapsed_ns=done[-1])

    assert judge(run).completed_per_s == pytest.approx(per_s)


def test_infinite_percentiles_survive_json() -> None:
    """12 of 400 failed: p95 is finite, p99 is infinite, and the bound of p99.9 is not known."""
    report = judge(replace(_run([5.0] * 400), failures=dict.fromkeys(range(12), "timeout")))
    written = msgspec.json.encode(report)
    shown = msgspec.json.decode(written)

    assert report.latency_ms.p99 == math.inf
    assert msgspec.json.decode(written, type=LoadReport) == report
    assert shown["latency_ms"] == {"p50": 5, "p90": 5, "p95": 5, "p99": None, "p999": None, "infinite": ["p99", "p999"]}
    assert shown["latency_bound_ms"]["p999"] is None
    assert shown["latency_bound_ms"]["infinite"] == ["p99"]
    assert "infinite" not in shown["lag_ms"]
