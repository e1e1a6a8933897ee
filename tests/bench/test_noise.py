"""The noise floor, through real workers with an engine of known cost."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from msgspec.structs import replace

from pinstripe.bench import Host, Limits, NoiseFloor, Record, Session, measure_noise, run_grid
from pinstripe.configuration import Configuration, Workload
from pinstripe.engines import Artefact, OptionValue
from pinstripe.errors import ExecutionError
from pinstripe.machine import read_machine
from pinstripe.pool import Setup, set_up
from pinstripe.testing.fake_engine import fake_network

WORKLOAD = Workload(scenario="offline", batch=4, sequence_tokens=16)


def _measure(rounds: int, **options: OptionValue) -> tuple[NoiseFloor, list[int]]:
    machine, network = read_machine(), fake_network()
    session = Session(
        run="run",
        network=network,
        machine=machine,
        host=Host(kernel="", python="", libraries={}),
        limits=Limits(min_s=0.1, min_forwards=3, warmup_max_s=0.05),
    )
    artefact = Artefact(format="none", path="", origin="model")
    setup = set_up(Configuration(engine="fake", cores=1, options=options), machine, network, lambda _: artefact)
    steps: list[int] = []

    def note(repeat: int, what: Setup, workload: Workload) -> None:
        assert (what, workload) == (setup, WORKLOAD)
        steps.append(repeat)

    return asyncio.run(measure_noise(session, setup, WORKLOAD, rounds=rounds, on_step=note)), steps


def test_a_configuration_is_compared_with_itself() -> None:
    """20 ms for 4 texts are 200 texts a second, in both arms; the interval and its half-width go together."""
    floor, steps = _measure(6, fixed_us=20_000)

    assert steps == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert (floor.ratio.pairs, floor.ratio.method) == (6, "bootstrap")
    assert len(floor.rates) == len(floor.base_rates) == 6
    assert max(floor.rates + floor.base_rates) == pytest.approx(200, rel=0.25)
    assert floor.ratio.low is not None
    assert floor.ratio.high is not None
    assert floor.floor_percent == pytest.approx((floor.ratio.high - floor.ratio.low) / 2 * 100, rel=0.5)


def test_arms_keep_their_values_when_turns_rotate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order in which A and B are measured alternates: rates 1, 2, 3, 4, 5, 6 are A, B, B, A, A, B."""
    numbers = itertools.count(1)

    async def numbered(*words: Any, **named: Any) -> AsyncGenerator[Record, None]:
        async for record in run_grid(*words, **named):
            assert record.measurement is not None
            yield replace(record, measurement=replace(record.measurement, samples_per_s=float(next(numbers))))

    monkeypatch.setattr("pinstripe.bench.noise.run_grid", numbered)
    floor, _ = _measure(3, fixed_us=1000)

    assert floor.rates == (1, 4, 5)
    assert floor.base_rates == (2, 3, 6)


def test_failure_is_said() -> None:
    """Without a measurement there is no noise floor."""
    with pytest.raises(ExecutionError, match=r"noise floor cannot be measured: .*exited with code 70"):
        _measure(2, crash_at=3)
