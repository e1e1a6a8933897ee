"""What the requests of a trial come to."""

import math
from pathlib import Path

import pytest
from msgspec.structs import replace

from pinstripe.bench import FORMAT, Load, Record, Trial, read_records, summarize
from pinstripe.bench.load_result import load_result
from pinstripe.cli.remarks import remarks
from pinstripe.configuration import Arrivals, DispatchRule, Policy, Trace, Workload
from pinstripe.load import LoadRun

GOLDEN = Path(__file__).parent / "golden"
MS = 1_000_000


def _run(latencies_ms: list[float], *, lag_ms: float = 0, failures: dict[int, str] | None = None) -> LoadRun:
    """A request every 10 ms."""
    scheduled = [number * 10 * MS for number in range(len(latencies_ms))]
    done = [due + round(latency * MS) for due, latency in zip(scheduled, latencies_ms, strict=True)]
    return LoadRun(
        planned=len(done),
        clients=None,
        scheduled_ns=tuple(scheduled),
        sent_ns=tuple(due + round(lag_ms * MS) for due in scheduled),
        done_ns=tuple(done),
        failures=failures or {},
        most_in_flight=1,
        elapsed_ns=max(done),
        cpu_ns=0,
        end="complete",
    )


def _record(run: LoadRun, tokens: list[int] | None = None, *, policy: Policy = "smart", repeat: int = 0) -> Record:
    (record,) = read_records(GOLDEN / f"format-{FORMAT}.jsonl")
    assert record.measurement is not None
    load = Load(run=run, tokens=tuple(tokens or [16] * len(run.done_ns)))
    latency_ns = tuple(int(value) for value in load.latency_ns if not math.isinf(value))
    return replace(
        record,
        repeat=repeat,
        workload=Workload(
            scenario="server",
            sequence_tokens=16,
            arrivals=Arrivals(process="constant", rate_per_s=100),
            dispatch=DispatchRule(policy=policy),
        ),
        measurement=replace(record.measurement, latency_ns=latency_ns, load=load),
    )


def _trial(*records: Record) -> Trial:
    (trial,) = summarize(records)
    return trial


def test_percentiles_are_those_of_all_requests_and_of_each_length_class() -> None:
    """Ten long requests among a hundred: the p99 of the short ones knows nothing of them."""
    latencies = [float(1 + number) for number in range(90)] + [500.0] * 10
    trial = _trial(_record(_run(latencies), [20] * 90 + [300] * 10))

    assert trial.result is not None
    assert trial.result.load is not None
    assert trial.result.latency_ms.p99 == 500
    assert trial.result.load.offered_per_s == pytest.approx(100)
    short, long = trial.result.load.classes
    assert (short.max_tokens, short.n, short.p50_ms, short.p99_ms) == (32, 90, 45, 90)
    assert (long.max_tokens, long.n, long.p99_ms, long.p99_bound_ms) == (512, 10, 500, None)
    assert trial.result.load.p999_ms is None


def test_failed_requests_are_infinitely_late() -> None:
    """Two of a hundred fail: the p99 is infinite, the median is not; the failures are said by kind."""
    trial = _trial(_record(_run([5.0] * 100, failures={3: "timeout", 50: "timeout"})))

    assert trial.result is not None
    assert trial.result.latency_ms.p50 == 5
    assert trial.result.latency_ms.p99 == math.inf
    assert any("2 requests failed: timeout" in line for line in remarks([trial]))


def test_a_generator_that_was_late_makes_the_trial_incomplete() -> None:
    """Requests sent 2 ms late, of 5 ms: the generator was measured; the remark says by how much in the worst round."""
    on_time, late = _record(_run([5.0] * 100)), _record(_run([5.0] * 100, lag_ms=2), repeat=1)
    trial = _trial(on_time, late)

    assert trial.result is not None
    assert trial.result.load is not None
    assert not trial.result.load.valid
    assert not trial.result.complete
    assert [line for line in remarks([trial]) if "2.0 ms late" in line]
    assert not [line for line in remarks([trial]) if "--max-time" in line]


def test_a_queue_that_grows_is_a_result_with_a_remark() -> None:
    """Each of 2,000 requests waits longer than the one before: saturated, and yet a valid measurement."""
    trial = _trial(_record(_run([10.0 + number for number in range(2000)])))

    assert trial.result is not None
    assert trial.result.load is not None
    assert trial.result.load.saturated
    assert trial.result.complete
    assert any("the queue grew" in line for line in remarks([trial]))


def test_policies_under_the_same_arrivals_are_compared_by_their_p99() -> None:
    """The same arrivals are answered after 20 and after 5 ms: four times as fast, though the rates are equal."""
    fifo = [_record(_run([20.0] * 300), policy="fifo", repeat=repeat) for repeat in range(2)]
    smart = [_record(_run([5.0] * 300), policy="smart", repeat=repeat) for repeat in range(2)]
    base, other = summarize([*fifo, *smart])

    assert base.result is not None
    assert base.result.ratio is None
    assert other.result is not None
    assert other.result.ratio is not None
    assert other.result.ratio.value == pytest.approx(4)


def test_a_text_longer_than_all_classes_is_in_the_rest() -> None:
    """Of the requests of 20 and of 300 tokens none is left out where only texts of up to 128 have a class."""
    load = Load(run=_run([5.0, 7.0]), tokens=(20, 300))
    found = load_result([load], (128,)).classes

    assert [(one.max_tokens, one.n, one.p50_ms) for one in found] == [(128, 1, 5), (None, 1, 7)]


def test_why_there_were_too_few_requests_is_said() -> None:
    """A trace of one request ends where it ends, and clients where their time does; a rate is cut by --max-time."""
    record = _record(_run([5.0]))
    assert record.measurement is not None
    short = replace(record, measurement=replace(record.measurement, complete=False))
    trace = Arrivals(process="trace", trace=Trace(file="t", sha256="", requests=1))
    clients = Arrivals(process="closed", clients=2)

    def said(arrivals: Arrivals) -> str | None:
        result = _trial(replace(short, workload=replace(short.workload, arrivals=arrivals))).result
        return result.incomplete_because if result else None

    least = record.limits.min_forwards
    assert said(trace) == f"the trace has 1 request, --min-forwards asks for {least}"
    assert f"--min-forwards asks for {least}; raise --min-time" in (said(clients) or "")
    assert "raise --max-time" in (said(Arrivals(rate_per_s=1)) or "")
    assert any("upper bound" in line for line in remarks([_trial(short)]))
    assert not any("upper bound" in line for line in remarks([_trial(record)]))
