"""Queues whose waiting times are known: the simulated machine has them too."""

import asyncio
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from pinstripe.models import TokenBatch
from pinstripe.simulate import Cost, Noise, SimulatedExecutor, SimulatedInstance, run_simulated

_REQUESTS = 10_000
_TEXT = TokenBatch(ids=np.ones((1, 1), np.int32), lengths=np.ones(1, np.int32))


def _waits(rate: float, cost: Cost, *, instances: int = 1, noise: Noise | None = None) -> NDArray[np.float64]:
    """Return how long each of many Poisson arrivals waited until it began, in seconds."""

    async def main() -> list[float]:
        executor = SimulatedExecutor((SimulatedInstance(1),) * instances, cost, noise=noise, seed=3)

        async def request() -> float:
            timing = (await executor.submit(_TEXT)).timing
            return (timing.started_ns - timing.submitted_ns) / 1e9

        requests = []
        for pause_s in np.random.default_rng(5).exponential(1 / rate, _REQUESTS):
            await asyncio.sleep(pause_s)
            requests.append(asyncio.ensure_future(request()))
        return await asyncio.gather(*requests)

    return np.array(run_simulated(main()))


def _check_mean(values: NDArray[np.number | np.bool_], expected: float) -> None:
    """Within four standard errors, estimated from the means of parts, since waits that follow each other are alike."""
    parts = [part.mean() for part in np.split(values, 50)]
    error = float(np.std(parts, ddof=1)) / 50**0.5
    assert error < 0.12 * expected, "the check would find nothing"
    assert values.mean() == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_constant_times_on_one_instance(load: float) -> None:
    """M/D/1: mean wait r / (2 (1 - r)) service times at load r, and Erlang's distribution (1909) of the waits."""
    waits = _waits(load, lambda *_: 1.0)

    _check_mean(waits, load / (2 * (1 - load)))
    for limit_s in (0.5, 1.5):
        within = (1 - load) * sum(
            (load * (k - limit_s)) ** k / math.factorial(k) * math.exp(-load * (k - limit_s))
            for k in range(int(limit_s) + 1)
        )
        _check_mean(waits > limit_s, 1 - within)


@pytest.mark.parametrize(("instances", "load"), [(1, 0.5), (2, 0.7), (4, 0.7)])
def test_exponential_times_on_several_instances(instances: int, load: float) -> None:
    """M/M/c: who waits at all (Erlang C), for how long on average, and the exponential tail."""
    random = np.random.default_rng(7)
    rate = load * instances
    waits = _waits(rate, lambda *_: float(random.exponential()), instances=instances)

    offered = rate**instances / math.factorial(instances) / (1 - load)
    who_waits = offered / (sum(rate**k / math.factorial(k) for k in range(instances)) + offered)
    _check_mean(waits > 0, who_waits)
    _check_mean(waits, who_waits / (instances - rate))
    for limit_s in (0.25, 0.75):
        _check_mean(waits > limit_s, who_waits * math.exp(-(instances - rate) * limit_s))


def test_noisy_times_on_one_instance() -> None:
    """M/G/1 with lognormal times: the mean wait of Pollaczek and Khinchine, rate E[S²] / (2 (1 - load))."""
    waits = _waits(0.6, lambda *_: 1.0, noise=Noise(sigma=0.5))

    _check_mean(waits, 0.6 * math.exp(0.5**2) / (2 * 0.4))
