"""Grids through real workers with an engine of known cost."""

import asyncio
from dataclasses import replace as with_
from typing import Any

import pytest
from msgspec.structs import replace

from pinstripe.bench import Host, Limits, Record, Session, make_grid, run_grid
from pinstripe.configuration import Configuration, Workload
from pinstripe.engines import Artefact
from pinstripe.errors import EngineError
from pinstripe.machine import read_machine
from pinstripe.pool import Setup, set_up
from pinstripe.testing.fake_engine import fake_network

WORKLOAD = Workload(scenario="offline", batch=1, sequence_tokens=16)


def _setup(**options: Any) -> Setup:
    nothing = Artefact(format="none", path="", origin="model")
    configuration = Configuration(engine="fake", cores=1)
    setup = set_up(configuration, read_machine(), fake_network(), lambda _: nothing)
    # Beyond what is checked before anything starts, as where a library refuses only when it loads the network.
    specs = tuple(replace(spec, load=replace(spec.load, options=options)) for spec in setup.specs)
    return with_(setup, configuration=replace(configuration, options=options), specs=specs)


def _run(*setups: Setup) -> list[Record]:
    async def collected() -> list[Record]:
        grid = make_grid(setups, [WORKLOAD], fake_network())
        return [record async for record in run_grid(grid, session, repeats=2, on_step=lambda *_: None)]

    session = Session(
        run="run",
        network=fake_network(),
        machine=read_machine(),
        host=Host(kernel="", python="", libraries={}),
        limits=Limits(min_s=0.05, min_forwards=1, warmup_max_s=0.05),
    )
    return asyncio.run(collected())


def test_an_engine_that_refuses_one_of_several() -> None:
    """What only the worker can refuse is a failure of that configuration; the others are measured in all rounds."""
    records = _run(_setup(fixed_us=-1), _setup(fixed_us=0))

    failures = [record.failure.message for record in records if record.failure]
    assert len(records) == 4
    assert len(failures) == 2
    assert all("does not take fixed_us=-1" in message for message in failures)


def test_an_engine_that_refuses_the_only_one() -> None:
    """Where nothing else is asked for, the refusal is the answer."""
    with pytest.raises(EngineError, match="does not take fixed_us=-1"):
        _run(_setup(fixed_us=-1))
