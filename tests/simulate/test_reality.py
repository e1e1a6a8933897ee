"""The simulated machine against real workers whose times are known."""

import asyncio
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
import pytest

from pinstripe.configuration import Arrivals, DispatchRule
from pinstripe.dispatch import Dispatcher, Request, loop_time_ns
from pinstripe.engines import Artefact, LoadRequest
from pinstripe.load import LoadReport, judge, new_fine_loop, run_load, schedule
from pinstripe.models import EncodedText, TokenBatch
from pinstripe.pool import Executor, Pool, WorkerSpec
from pinstripe.simulate import SimulatedExecutor, SimulatedInstance, run_simulated
from pinstripe.testing.fake_engine import fake_network

_FIXED_MS, _TOKEN_MS = 20, 2
_TOKENS = tuple(60 if number % 10 == 3 else 4 + number * 7 % 9 for number in range(100))


def _pad(rows: Sequence[EncodedText]) -> TokenBatch:
    lengths = np.array([len(row) for row in rows], np.int32)
    return TokenBatch(ids=np.ones((len(rows), lengths.max()), np.int32), lengths=lengths)


async def _ask(executor: Executor, cpu_ns: Callable[[], int]) -> LoadReport:
    dispatcher = Dispatcher(executor, pad=_pad, rule=DispatchRule(tokens=64))
    rows = [EncodedText(np.ones(tokens, np.int32)) for tokens in _TOKENS]
    await dispatcher.warm_up(rows, 0)

    class Target:
        async def send(self, number: int) -> None:
            await dispatcher.request(Request((rows[number % len(rows)],), loop_time_ns()))

    run = await run_load(Target(), schedule(Arrivals(rate_per_s=30), 20).tolist(), cpu_ns=cpu_ns)
    await dispatcher.close()
    return judge(run)


async def _ask_real_workers() -> LoadReport:
    load = LoadRequest(
        network=fake_network(),
        artefact=Artefact(format="none", path="", origin="model"),
        threads=1,
        options={"fixed_us": _FIXED_MS * 1e3, "per_token_us": _TOKEN_MS * 1e3},
    )
    async with Pool([WorkerSpec(engine="fake", load=load, cpus=None)] * 2) as pool:
        return await _ask(pool, lambda: 0)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_queues_of_a_real_pool() -> None:
    """Two workers that sleep for a known time answer as fast as the simulation says: 10 %, and 20 % at the 99th."""

    def cost(cores: int, texts: int, tokens: int) -> float:
        return (_FIXED_MS + _TOKEN_MS * texts * tokens) / cores / 1e3

    with asyncio.Runner(loop_factory=new_fine_loop) as runner:
        runs = [runner.run(_ask_real_workers()) for _ in range(3)]
    real = [run for run in runs if run.valid]
    if not real:
        pytest.skip(f"this machine is too busy to compare with: {runs[0].invalid_because}")
    machine = SimulatedExecutor((SimulatedInstance(1),) * 2, cost, overhead_s=0.0005)
    simulated = run_simulated(_ask(machine, lambda: 0))

    assert simulated.requests == real[0].requests
    for name, tolerance in (("p50", 0.1), ("p99", 0.2)):
        measured = median(getattr(run.latency_ms, name) for run in real)  # a stall in one of them is not the pool's
        assert getattr(simulated.latency_ms, name) == pytest.approx(measured, rel=tolerance)
    assert simulated.completed_per_s == pytest.approx(median(run.completed_per_s for run in real), rel=0.1)
