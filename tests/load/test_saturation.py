"""Whether a server that falls behind is told from one that is busy."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pinstripe.configuration import Arrivals
from pinstripe.load import judge, run_load, schedule
from pinstripe.load.saturation import falls_behind
from pinstripe.simulate import run_simulated
from pinstripe.testing.fake_service import FakeService, FakeTarget

SEEDS = 300


def _queue(load: float, requests: int, seed: int, servers: int = 1) -> NDArray[np.float64]:
    """Latencies of M/D/c with a service time of 1; as that is fixed, every c-th request has the same server."""
    arrivals = np.cumsum(np.random.default_rng(seed).standard_exponential(requests)) / (load * servers)
    latencies = np.empty(requests)
    for server in range(servers):
        own = arrivals[server::servers]
        turn = np.arange(len(own))
        latencies[server::servers] = np.maximum.accumulate(own - turn) + turn + 1 - own
    return latencies


def _share(load: float, requests: int, servers: int = 1) -> float:
    told = [falls_behind(_queue(load, requests, seed, servers).tolist()) for seed in range(SEEDS)]
    return sum(bool(one) for one in told) / SEEDS


@pytest.mark.parametrize(("load", "servers", "least"), [(1.05, 1, 0.95), (1.05, 8, 0.95), (1.3, 24, 1.0)])
def test_overload_is_told(load: float, servers: int, least: float) -> None:
    """5 % too many requests, 2,000 of them, whatever the seed in more than 95 % of seeds."""
    assert _share(load, 2000, servers) > least - 1e-9


@pytest.mark.parametrize(("load", "servers"), [(0.5, 1), (0.9, 1), (0.9, 8), (0.9, 24)])
def test_a_busy_server_is_not_called_overloaded(load: float, servers: int) -> None:
    """Nine tenths of what it can do are no overload in more than 95 % of seeds."""
    assert _share(load, 2000, servers) < 0.05


@pytest.mark.parametrize(("rate", "saturated"), [(90, False), (105, True)])
def test_in_virtual_time(rate: float, *, saturated: bool) -> None:
    """The same through the generator, for a service of 10 ms."""
    offsets = schedule(Arrivals(rate_per_s=rate, seed=1), requests=2000)
    report = judge(run_simulated(run_load(FakeTarget(FakeService(0.01)), offsets, cpu_ns=lambda: 0)))

    assert report.saturated is saturated
    if saturated:
        assert report.offered_per_s is not None
        assert report.completed_per_s < report.offered_per_s
        assert report.completed_per_s == pytest.approx(100, rel=0.03)


def test_a_stall_that_is_worked_off_is_no_overload() -> None:
    """A long stall before the last quarter leaves a queue, which goes."""
    offsets = schedule(Arrivals(process="constant", rate_per_s=80), requests=2000)
    service = FakeService(0.01, stall=(17.0, 1.0))

    assert judge(run_simulated(run_load(FakeTarget(service), offsets, cpu_ns=lambda: 0))).saturated is False


def test_few_requests_do_not_tell() -> None:
    """Below 1,000 nothing is claimed."""
    assert falls_behind(list(range(1, 1000))) is None
    assert falls_behind(list(range(1, 1001)))
