"""A simulated machine keeps an executor's promises, and its times are those that were asked for."""

import asyncio
import statistics
from collections.abc import Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import numpy as np
import pytest

from pinstripe.errors import ConfigurationError, WorkerError
from pinstripe.models import TokenBatch
from pinstripe.pool import BatchResult, BatchTiming, Executor
from pinstripe.simulate import Noise, PublishedCost, SimulatedExecutor, SimulatedInstance, run_simulated
from pinstripe.testing.executor_conformance import ExecutorConformance, closing

_Returned = TypeVar("_Returned")


def _batch(texts: int = 1, tokens: int = 8) -> TokenBatch:
    return TokenBatch(ids=np.ones((texts, tokens), np.int32), lengths=np.full(texts, tokens, np.int32))


def _a_millisecond_a_token(cores: int, texts: int, tokens: int) -> float:
    return texts * tokens / cores / 1e3


def _timing_ms(result: BatchResult) -> tuple[float, ...]:
    timing = result.timing
    times = (timing.submitted_ns, timing.started_ns, timing.finished_ns, timing.done_ns)
    assert timing.finished_ns - timing.started_ns == timing.engine_ns
    return tuple(time / 1e6 for time in times)


async def _at_once(executor: Executor, *batches: tuple[TokenBatch, int | None]) -> list[BatchResult]:
    return await asyncio.gather(*(executor.submit(batch, instance=instance) for batch, instance in batches))


class TestConformance(ExecutorConformance):
    """The promises of every executor."""

    def make(self) -> AbstractAsyncContextManager[Executor]:
        """Make two instances, with everything that a real machine has."""
        instances = (SimulatedInstance(2), SimulatedInstance(2))
        noise = Noise(sigma=0.1, stalls_per_s=1.0, stall_s=0.01)
        return closing(
            SimulatedExecutor(instances, _a_millisecond_a_token, noise=noise, contention=0.5, overhead_s=1e-4)
        )

    def run(self, main: Coroutine[Any, Any, _Returned]) -> _Returned:
        """Run in virtual time."""
        return run_simulated(main)


def test_times_and_outputs() -> None:
    """A batch takes what its cores, texts and padded tokens cost; the output tells which texts came back."""
    batch = TokenBatch(ids=np.ones((3, 10), np.int32), lengths=np.array([10, 2, 5], np.int32))

    async def main() -> list[BatchResult]:
        executor = SimulatedExecutor((SimulatedInstance(1), SimulatedInstance(4)), _a_millisecond_a_token)
        await asyncio.sleep(1)
        return await _at_once(executor, (batch, 0), (batch, 1))

    small, large = run_simulated(main())
    assert _timing_ms(small) == (1000, 1000, 1030, 1030)
    assert _timing_ms(large) == (1000, 1000, 1007.5, 1007.5)
    assert small.outputs["output"].tolist() == [[10], [2], [5]]
    assert small.outputs["output"].dtype == np.float32


def test_one_batch_at_a_time_in_the_order_of_arrival() -> None:
    """What is for an instance waits for it, before what is for any; the rest goes where it can begin first."""

    async def main() -> list[BatchResult]:
        executor = SimulatedExecutor((SimulatedInstance(1), SimulatedInstance(1)), _a_millisecond_a_token)
        work = [(20, 0), (10, 0), (50, 1), (5, None), (1, 0)]
        return await _at_once(executor, *((_batch(1, tokens), instance) for tokens, instance in work))

    results = run_simulated(main())
    assert [result.instance for result in results] == [0, 0, 1, 0, 0]
    assert [_timing_ms(result)[1:3] for result in results] == [(0, 20), (20, 30), (0, 50), (31, 36), (30, 31)]


def test_overhead_is_between_batches_but_not_behind_a_waiting_one() -> None:
    """The caller hears of a batch later; the instance goes on meanwhile if it has something."""

    async def main() -> list[BatchResult]:
        executor = SimulatedExecutor((SimulatedInstance(1),), _a_millisecond_a_token, overhead_s=0.002)
        first = await executor.submit(_batch(1, 10))
        return [first, *await _at_once(executor, (_batch(1, 10), None), (_batch(1, 10), None))]

    assert [_timing_ms(result) for result in run_simulated(main())] == [
        (0, 0, 10, 12),
        (12, 12, 22, 24),
        (12, 22, 32, 34),
    ]


def test_neighbours_on_the_socket_slow_down() -> None:
    """By the share of the others' cores that is busy at the beginning; the other socket does not matter."""
    sockets = ((2, 0), (2, 0), (4, 0), (2, 1))

    async def main() -> list[BatchResult]:
        executor = SimulatedExecutor(
            [SimulatedInstance(cores, socket) for cores, socket in sockets], lambda *_: 0.006, contention=0.5
        )
        return await _at_once(executor, *((_batch(), index) for index in (3, 0, 2, 1)))

    other_socket, first, second, third = run_simulated(main())
    assert _timing_ms(other_socket)[2] == 6
    assert _timing_ms(first)[2] == 6
    assert _timing_ms(second)[2] == pytest.approx(6 * (1 + 0.5 * 2 / 4))
    assert _timing_ms(third)[2] == pytest.approx(6 * (1 + 0.5 * 6 / 6))


def test_slow_instance() -> None:
    """One of a slow socket takes longer by its factor."""

    async def main() -> list[BatchResult]:
        instances = (SimulatedInstance(1, 0), SimulatedInstance(1, 1, slowness=1.3))
        executor = SimulatedExecutor(instances, _a_millisecond_a_token)
        return await _at_once(executor, (_batch(1, 10), 0), (_batch(1, 10), 1))

    assert [_timing_ms(result)[2] for result in run_simulated(main())] == [10, 13]


def _times_ms(noise: Noise, *, seed: int = 0, instance: int = 0, batches: int = 2000) -> list[float]:
    async def main() -> list[float]:
        executor = SimulatedExecutor((SimulatedInstance(1),) * 2, lambda *_: 0.01, noise=noise, seed=seed)
        return [(await executor.submit(_batch(), instance=instance)).timing.engine_ns / 1e6 for _ in range(batches)]

    return run_simulated(main())


def test_noise_is_lognormal_with_the_mean_of_the_cost() -> None:
    """The mean is that without noise, and logarithms vary by sigma; bounds are five standard errors."""
    times = _times_ms(Noise(sigma=0.2))

    logs = np.log(times)
    assert statistics.mean(times) == pytest.approx(10, abs=5 * 10 * 0.2 / 2000**0.5)
    assert logs.std() == pytest.approx(0.2, abs=5 * 0.2 / 4000**0.5)
    assert abs(((logs - logs.mean()) ** 3).mean() / logs.std() ** 3) < 5 * (6 / 2000) ** 0.5  # symmetric


def test_stalls_are_as_rare_and_as_long_as_asked() -> None:
    """Five in a second of work are one in twenty batches of 10 ms, or 1 - exp(-0.05); nothing else changes."""
    times = _times_ms(Noise(stalls_per_s=5.0, stall_s=0.5))

    assert set(times) == {10, 510}
    assert times.count(510) == pytest.approx(2000 * 0.04877, abs=5 * (2000 * 0.05 * 0.95) ** 0.5)


def test_noise_repeats_itself_with_the_seed() -> None:
    """The same seed gives the same times, another seed or instance others."""
    noise = Noise(sigma=0.3, stalls_per_s=10, stall_s=0.1)
    times = _times_ms(noise, batches=50)

    assert times == _times_ms(noise, batches=50)
    assert not set(times) & set(_times_ms(noise, batches=50, seed=1))
    assert not set(times) & set(_times_ms(noise, batches=50, instance=1))


def test_an_instance_s_noise_does_not_depend_on_the_others() -> None:
    """Nor on whether stalls are wanted: comparing two policies, or two machines, compares the same luck."""
    noise = Noise(sigma=0.3)

    async def main() -> list[float]:
        executor = SimulatedExecutor((SimulatedInstance(1),) * 2, lambda *_: 0.01, noise=noise)
        results = await _at_once(executor, *((_batch(), index % 2) for index in range(100)))
        return [result.timing.engine_ns / 1e6 for result in results if result.instance == 0]

    alone = _times_ms(noise, batches=50)
    assert run_simulated(main()) == alone
    stalled = _times_ms(Noise(sigma=0.3, stalls_per_s=20.0, stall_s=1.0), batches=50)
    assert {round(time % 1000, 3) for time in stalled} == {round(time, 3) for time in alone}


def test_the_same_run_twice_is_the_same_to_the_nanosecond() -> None:
    """Arrivals, queues, noise and overhead repeat themselves."""

    async def main() -> list[BatchTiming]:
        noise = Noise(sigma=0.5, stalls_per_s=1.0, stall_s=0.2)
        executor = SimulatedExecutor(
            (SimulatedInstance(1),) * 3, _a_millisecond_a_token, noise=noise, contention=0.3, overhead_s=1e-4
        )
        random = np.random.default_rng(1)

        async def request(at_s: float) -> BatchTiming:
            await asyncio.sleep(at_s)
            return (await executor.submit(_batch(1, int(at_s * 1000) % 30 + 1))).timing

        return await asyncio.gather(*(request(at_s) for at_s in np.cumsum(random.exponential(0.006, 500))))

    assert run_simulated(main()) == run_simulated(main())


def test_closing_fails_what_waits_and_runs() -> None:
    """Nobody is left waiting."""

    async def main() -> Sequence[object]:
        executor = SimulatedExecutor((SimulatedInstance(1),), _a_millisecond_a_token)
        waiting = [asyncio.ensure_future(executor.submit(_batch())) for _ in range(3)]
        await asyncio.sleep(0.001)
        await executor.close()
        return await asyncio.gather(*waiting, return_exceptions=True)

    errors = run_simulated(main())
    assert [type(error) for error in errors] == [WorkerError] * 3
    assert all("closed" in str(error) for error in errors)


def test_who_gives_up_while_waiting_costs_nothing() -> None:
    """A batch that nobody waits for is not run; one that runs already is."""

    async def main() -> BatchResult:
        executor = SimulatedExecutor((SimulatedInstance(1),), _a_millisecond_a_token)
        given_up = [asyncio.ensure_future(executor.submit(_batch(1, 10))) for _ in range(3)]
        last = asyncio.ensure_future(executor.submit(_batch(1, 10)))
        await asyncio.sleep(0.001)
        for task in given_up:
            task.cancel()
        return await last

    assert _timing_ms(run_simulated(main())) == (0, 10, 20, 20)


def test_bad_input() -> None:
    """What makes no sense is refused."""
    with pytest.raises(ConfigurationError, match="no instances"):
        SimulatedExecutor((), _a_millisecond_a_token)
    with pytest.raises(ConfigurationError, match="below 0"):
        SimulatedExecutor((SimulatedInstance(1),), _a_millisecond_a_token, overhead_s=-1)
    with pytest.raises(ConfigurationError, match="out of range"):
        Noise(sigma=2.5)
    with pytest.raises(ConfigurationError, match="out of range"):
        Noise(stalls_per_s=-1.0)
    with pytest.raises(ConfigurationError, match="49 cores"):
        SimulatedExecutor((SimulatedInstance(49),), PublishedCost("2x24"))
    executor = SimulatedExecutor((SimulatedInstance(1),), _a_millisecond_a_token)
    for instance in (-1, 1):
        with pytest.raises(ConfigurationError, match="0 to 0"):
            run_simulated(executor.submit(_batch(), instance=instance))
