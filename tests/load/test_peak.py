"""The highest rate that holds, against servers whose capacity is known without it."""

import asyncio
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from pinstripe.configuration import Arrivals
from pinstripe.load import LoadRun, Peak, find_peak, run_load, schedule
from pinstripe.simulate import run_simulated
from pinstripe.testing.fake_service import FakeService, FakeTarget


def _wait_at_most(load: float, services: float) -> float:
    """The probability that a request of M/D/1 waits no longer than so many service times (Erlang 1909, Crommelin 1932).

    (1 - r) sum over k = 0 … floor(t) of (r (k - t))^k / k! e^(-r (k - t)); its terms alternate, hence the digits.
    """
    with localcontext() as context:
        context.prec = 60
        r, t = Decimal(load), Decimal(services)
        terms = (
            ((r * (k - t)) ** k if k else Decimal(1)) / math.factorial(k) * (-(r * (k - t))).exp()
            for k in range(int(t) + 1)
        )
        return float((1 - r) * sum(terms))


def _true_load(services: float) -> float:
    """The load at which 99 % of the requests of M/D/1 are answered within so many service times."""
    low, high = 0.01, 0.99
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _wait_at_most(middle, services - 1) >= 0.99 else (low, middle)
    return low


def _peak(
    service_s: float, p99_ms: float, *, start: float, process: str = "constant", requests: int = 2000, seed: int = 0
) -> Peak:
    async def run_at(rate: float, seed: int) -> LoadRun:
        arrivals = Arrivals(process=process, rate_per_s=rate, seed=seed)  # type: ignore[arg-type]
        offsets = schedule(arrivals, requests=requests)
        return await run_load(FakeTarget(FakeService(service_s)), offsets, p99_ms=p99_ms, cpu_ns=lambda: 0)

    return run_simulated(find_peak(run_at, p99_ms, start_per_s=start, seed=seed))


def test_the_formula_of_the_waiting_time() -> None:
    """No waiting with probability 1 - r; half load, one service: 0.5 e^0.5."""
    assert _wait_at_most(0.3, 0) == pytest.approx(0.7)
    assert _wait_at_most(0.5, 0.999999) == pytest.approx(0.5 * math.exp(0.5), rel=1e-5)


@pytest.mark.parametrize(("service_s", "start"), [(0.01, 93.0), (0.004, 20.0), (0.02, 900.0)])
def test_constant_arrivals_find_the_capacity(service_s: float, start: float) -> None:
    """A server that takes s seconds for each can do 1/s a second, from wherever the search begins."""
    peak = _peak(service_s, 5000 * service_s, start=start, requests=1000)

    assert peak.limit == "server"
    assert peak.rate_per_s is not None
    assert peak.rate_per_s == pytest.approx(1 / service_s, rel=0.03)
    assert peak.steps[-1].holds
    assert peak.steps[-1].seed == 1
    assert {step.seed for step in peak.steps[:-1]} == {0}
    failed = min(step.rate_per_s for step in peak.steps if not step.holds)
    assert 1 < failed / peak.rate_per_s < 1.02


@pytest.mark.parametrize("seed", [0, 100])
def test_poisson_arrivals_find_what_the_waiting_times_allow(seed: int) -> None:
    """A service of 10 ms keeps p99 ≤ 100 ms up to 77.35 requests a second; within 3 %.

    The queue is computed at once for all requests, since the 99th percentile of so few as an event loop would do in a
    test is not known to 3 %.
    """
    requests, service_ns = 80_000, 10_000_000
    turn = np.arange(requests)

    async def run_at(rate: float, seed: int) -> LoadRun:
        due = schedule(Arrivals(rate_per_s=rate, seed=seed), requests=requests)
        done = np.maximum.accumulate(due - turn * service_ns) + (turn + 1) * service_ns
        await asyncio.sleep(0)
        return LoadRun(
            planned=requests,
            clients=None,
            scheduled_ns=tuple(due.tolist()),
            sent_ns=tuple(due.tolist()),
            done_ns=tuple(done.tolist()),
            failures={},
            most_in_flight=int((turn + 1 - np.searchsorted(done, due, side="right")).max()),
            elapsed_ns=int(done[-1]),
            cpu_ns=0,
            end="complete",
        )

    peak = run_simulated(find_peak(run_at, 100.0, start_per_s=95.0, seed=seed))

    assert _true_load(10) == pytest.approx(0.7735, abs=1e-4)
    assert peak.rate_per_s == pytest.approx(100 * _true_load(10), rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 100])
def test_poisson_arrivals_through_the_generator(seed: int) -> None:
    """The same request by request; 40,000 at each rate."""
    peak = _peak(0.01, 100.0, start=95.0, process="poisson", requests=40_000, seed=seed)

    assert peak.rate_per_s == pytest.approx(100 * _true_load(10), rel=0.04)


def test_a_bound_that_no_rate_keeps() -> None:
    """A service of 10 ms is never answered within 5; the search ends, soon, and says so."""
    peak = _peak(0.01, 5.0, start=50.0)

    assert peak.rate_per_s is None
    assert peak.limit == "server"
    assert all(step.report.end == "hopeless" for step in peak.steps)
    assert sum(step.report.requests for step in peak.steps) < 500
    assert len(peak.steps) < 15


def test_a_rate_at_which_no_request_meets_another_is_the_lowest() -> None:
    """At 4 a second, evenly, none is under way when the next comes, and each takes 10 of the 5 ms: one run will do."""
    peak = _peak(0.01, 5.0, start=4.0)

    assert peak.rate_per_s is None
    assert len(peak.steps) == 1


def test_requests_that_meet_no_other_tell_that_no_rate_holds() -> None:
    """Two of these arrivals are 2 ‰ of the mean gap apart, so that they meet at any rate above 0.2; the rest tells."""
    peak = _peak(0.01, 5.0, start=90.0, process="poisson", requests=299)

    assert peak.rate_per_s is None
    assert min(step.rate_per_s for step in peak.steps) > 5


def test_an_early_end_changes_no_decision() -> None:
    """With and without it, the same rates hold."""

    async def run_at(rate: float, seed: int, *, early: bool) -> LoadRun:
        offsets = schedule(Arrivals(rate_per_s=rate, seed=seed), requests=400)
        bound = 50.0 if early else None
        return await run_load(FakeTarget(FakeService(0.01)), offsets, p99_ms=bound, cpu_ns=lambda: 0)

    async def both() -> list[Peak]:
        return [
            await find_peak(lambda rate, seed, early=early: run_at(rate, seed, early=early), 50.0, start_per_s=90.0)  # type: ignore[misc]
            for early in (True, False)
        ]

    early, late = run_simulated(both())

    assert [(step.rate_per_s, step.holds) for step in early.steps] == [
        (step.rate_per_s, step.holds) for step in late.steps
    ]
    assert sum(step.report.requests for step in early.steps) < sum(step.report.requests for step in late.steps)


def test_a_generator_at_its_limit_is_said() -> None:
    """Above 120 a second it needs more than a CPU; the server could do 1,000."""

    async def run_at(rate: float, seed: int) -> LoadRun:
        offsets = schedule(Arrivals(process="constant", rate_per_s=rate, seed=seed), requests=400)
        used = iter((0, 10**12 if rate > 120 else 0))
        return await run_load(FakeTarget(FakeService(0.001)), offsets, cpu_ns=lambda: next(used))

    peak = run_simulated(find_peak(run_at, 50.0, start_per_s=50.0))

    assert peak.limit == "generator"
    assert peak.rate_per_s == pytest.approx(120, rel=0.03)


def test_a_generator_that_is_always_disturbed_ends_the_search() -> None:
    """Ever slower runs would take for ever, and show nothing."""

    async def run_at(rate: float, seed: int) -> LoadRun:
        offsets = schedule(Arrivals(rate_per_s=rate, seed=seed), requests=300)
        used = iter((0, 10**15))
        return await run_load(FakeTarget(FakeService(0.001)), offsets, cpu_ns=lambda: next(used))

    peak = run_simulated(find_peak(run_at, 50.0, start_per_s=50.0))

    assert peak.rate_per_s is None
    assert peak.limit == "generator"
    assert len(peak.steps) == 6  # three rates, twice each


def test_a_rate_that_other_arrivals_do_not_confirm_is_lowered() -> None:
    """With the next seed the server is 5 % slower: three steps of 2 % down."""

    async def run_at(rate: float, seed: int) -> LoadRun:
        offsets = schedule(Arrivals(process="constant", rate_per_s=rate), requests=1000)
        return await run_load(FakeTarget(FakeService(0.01 * (1.05 if seed else 1))), offsets, cpu_ns=lambda: 0)

    peak = run_simulated(find_peak(run_at, 50.0, start_per_s=90.0))

    assert peak.rate_per_s == pytest.approx(100 / 1.05, rel=0.03)
    assert [step.holds for step in peak.steps if step.seed == 1][-1]


def test_stopping_keeps_the_steps() -> None:
    """What was found so far stays."""

    async def stopped() -> Peak:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(30, stop.set)

        async def run_at(rate: float, seed: int) -> LoadRun:
            offsets = schedule(Arrivals(rate_per_s=rate, seed=seed), requests=1000)
            return await run_load(FakeTarget(FakeService(0.01)), offsets, stop=stop, cpu_ns=lambda: 0)

        return await find_peak(run_at, 200.0, start_per_s=70.0)

    peak = run_simulated(stopped())

    assert peak.limit == "stopped"
    assert peak.rate_per_s is None
    assert len(peak.steps) >= 1
