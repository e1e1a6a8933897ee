"""What server and multi-stream measure, in virtual time, on instances whose times are known to the nanosecond."""

from collections.abc import Callable, Sequence
from statistics import fmean

import msgspec
import numpy as np
import pytest

from pinstripe.bench import Limits, Measurement, multi_stream, server
from pinstripe.bench.inputs import fixed_texts
from pinstripe.bench.server import offsets_ns
from pinstripe.configuration import Arrivals, DispatchRule, Trace
from pinstripe.dispatch import Dispatcher
from pinstripe.errors import ConfigurationError, ExecutionError
from pinstripe.simulate import Cost, SimulatedExecutor, SimulatedInstance, run_simulated
from pinstripe.testing.fake_engine import fake_network

MS = 1_000_000
TOKENS = 16
TEXTS = fixed_texts(fake_network(), TOKENS)
ALONE = DispatchRule(policy="fifo", tokens=TOKENS)
"""Every text is a batch of its own."""


def _five_ms(cores: int, texts: int, tokens: int) -> float:
    del cores, texts, tokens
    return 0.005


class _Stalls:
    """A machine that takes 5 ms a batch, and once a second."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.counts = False

    def begin(self) -> None:
        self.counts = True

    def __call__(self, cores: int, texts: int, tokens: int) -> float:
        del cores, texts, tokens
        self._left -= self.counts
        return 1.0 if self._left == 0 and self.counts else 0.005


def _dispatcher(cost: Cost, instances: int, rule: DispatchRule) -> Dispatcher:
    machine = SimulatedExecutor([SimulatedInstance(cores=1)] * instances, cost)
    return Dispatcher(machine, pad=TEXTS.pad, rule=rule)


def _server(
    arrivals: Arrivals,
    limits: Limits,
    *,
    cost: Cost = _five_ms,
    instances: int = 1,
    times: Sequence[int] | None = None,
    on_open: Callable[[], None] = lambda: None,
) -> Measurement:
    async def measured() -> Measurement:
        dispatcher = _dispatcher(cost, instances, ALONE)
        offsets = None if times is None else np.array(times, np.int64)
        return await server(dispatcher, TEXTS.rows, arrivals, limits, times=offsets, on_open=on_open)

    return run_simulated(measured())


def test_evenly_spaced_requests_never_wait() -> None:
    """100 requests a second of 5 ms: each is answered after 5 ms; no more are answered than offered."""
    measured = _server(Arrivals(process="constant", rate_per_s=100), Limits(min_s=1.0, min_forwards=1))

    assert measured.latency_ns == (5 * MS,) * 100
    assert measured.samples == 100
    assert measured.samples_per_s == pytest.approx(100)
    assert measured.tokens == measured.padded_tokens == 100 * TOKENS
    assert measured.engine_ns == ((5 * MS,) * 100,)
    assert measured.complete


def test_a_stall_is_felt_by_all_who_arrive_meanwhile() -> None:
    """One batch in 1,000 takes a second: 200 requests wait, 1,000, 995, 990, … ms, and the 11th longest is the p99."""
    stalls = _Stalls(at=501)
    measured = _server(
        Arrivals(process="constant", rate_per_s=100),
        Limits(min_s=10.0, min_forwards=1),
        cost=stalls,
        on_open=stalls.begin,
    )

    assert sorted(measured.latency_ns)[-200:] == [milliseconds * MS for milliseconds in range(5, 1001, 5)]
    assert sorted(measured.latency_ns)[989] == 950 * MS


def test_random_arrivals_wait_as_queueing_theory_says() -> None:
    """At half load the mean wait in M/D/1 is half a service time: rho / (2 (1 - rho)) of 5 ms, after Pollaczek."""
    measured = _server(Arrivals(rate_per_s=100, seed=1), Limits(min_s=25.0, min_forwards=1))

    assert fmean(measured.latency_ns) == pytest.approx(7.5 * MS, rel=0.05)


def test_clients_send_the_next_request_when_they_have_their_answer() -> None:
    """Two clients of one instance wait for each other: 200 answers a second, each after 10 ms but the first."""
    measured = _server(Arrivals(process="closed", clients=2), Limits(min_s=1.0, min_forwards=1))

    assert measured.samples_per_s == pytest.approx(200, rel=0.02)
    assert set(measured.latency_ns) == {5 * MS, 10 * MS}
    assert measured.load is not None
    assert measured.load.run.clients == 2


def test_requests_of_several_texts_are_answered_when_all_are() -> None:
    """Four texts, one at a time on one instance: 20 ms; on two instances 10."""
    arrivals = Arrivals(process="constant", rate_per_s=10, texts=4)
    one = _server(arrivals, Limits(min_s=1.0, min_forwards=1))
    two = _server(arrivals, Limits(min_s=1.0, min_forwards=1), instances=2)

    assert set(one.latency_ns) == {20 * MS}
    assert set(two.latency_ns) == {10 * MS}
    assert one.samples == two.samples == 40


def test_a_trace_is_sent_as_it_was() -> None:
    """Three requests, the second while the first runs: it waits the rest of its 5 ms."""
    trace = Trace(file="t", sha256="", requests=3)
    measured = _server(Arrivals(process="trace", trace=trace), Limits(min_forwards=1), times=[0, 2 * MS, 500 * MS])

    assert measured.latency_ns == (5 * MS, 8 * MS, 5 * MS)


def test_the_highest_rate_that_keeps_a_bound_is_found() -> None:
    """An instance that takes 5 ms answers 200 evenly spaced requests a second, and at 2 % more a queue grows."""
    measured = _server(Arrivals(process="constant", p99_ms=20), Limits(min_s=3.0, min_forwards=1))

    assert measured.load is not None
    assert measured.load.peak is not None
    assert measured.load.peak.rate_per_s == pytest.approx(200, rel=0.03)
    assert measured.samples_per_s == pytest.approx(200, rel=0.03)


def test_a_bound_that_cannot_be_kept_is_said() -> None:
    """No rate makes an instance that takes 5 ms answer in 4; the search ends soon, and says so."""
    with pytest.raises(ExecutionError, match="no rate keeps a p99 of 4 ms: at"):
        _server(Arrivals(p99_ms=4), Limits(min_s=1.0, min_forwards=1))


def test_queries_are_split_over_the_instances() -> None:
    """Four texts in batches of two on two instances take 5 ms, query after query: 800 texts a second."""

    async def measured() -> Measurement:
        dispatcher = _dispatcher(_five_ms, 2, DispatchRule(policy="fifo", tokens=2 * TOKENS))
        return await multi_stream(dispatcher, TEXTS.rows, 4, Limits(min_s=1.0, min_forwards=10))

    result = run_simulated(measured())

    assert result.latency_ns == (5 * MS,) * 200
    assert result.samples_per_s == pytest.approx(800)
    assert [len(lane) for lane in result.engine_ns] == [200, 200]
    assert result.load is None


def test_a_measurement_is_read_as_it_was_written() -> None:
    """Raw times, failures by number and the search for the peak survive JSON."""
    measured = _server(Arrivals(process="constant", p99_ms=20), Limits(min_s=1.0, min_forwards=1))

    assert msgspec.json.decode(msgspec.json.encode(measured), type=Measurement) == measured


def test_requests_arrive_for_the_least_time_but_as_many_as_are_wanted() -> None:
    """At 100/s, 2 s are 200 requests; at 1/s it takes 10 s to have ten; 5 s are the most."""
    assert len(offsets_ns(Arrivals(process="constant", rate_per_s=100), Limits(min_s=2.0, min_forwards=10))) == 200
    assert len(offsets_ns(Arrivals(rate_per_s=1), Limits(min_s=2.0, min_forwards=10))) == 10
    assert len(offsets_ns(Arrivals(process="constant", rate_per_s=1), Limits(min_s=2.0, min_forwards=10, max_s=5))) == 5


def test_more_requests_than_can_be_kept_are_refused() -> None:
    """A million a second for a minute is said before anything starts."""
    with pytest.raises(ConfigurationError, match="make it shorter"):
        offsets_ns(Arrivals(rate_per_s=1e6), Limits(min_s=60.0))


def test_one_instance_too_few_answers_fewer_than_are_offered() -> None:
    """400 requests a second of 5 ms, for half a second: 200 answers take 1 s."""
    measured = _server(Arrivals(process="constant", rate_per_s=400), Limits(min_s=0.5, min_forwards=1))

    assert measured.samples_per_s == pytest.approx(200)
