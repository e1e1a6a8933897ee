"""Requests with pauses between them, as `benchmarks/knobs.py` measures them."""

import asyncio
import importlib
from pathlib import Path
from typing import Any

import pytest

from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact
from pinstripe.machine import read_machine
from pinstripe.pool import Setup, set_up
from pinstripe.testing.fake_engine import fake_network

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def _setup(*, busy: bool, **options: Any) -> Setup:
    configuration = Configuration(engine="fake", cores=1, options={"fixed_us": 20_000, "busy": busy, **options})
    artefact = Artefact(format="none", path="", origin="model")
    return set_up(configuration, read_machine(), fake_network(), lambda _: artefact)


def _measured(monkeypatch: pytest.MonkeyPatch, *setups: Setup) -> tuple[list[Any], list[str]]:
    """Measure with pauses of 0 and 50 ms in one round; return the records, and the lines of their tables."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    gaps = importlib.import_module("knob_sections.gaps")
    measuring = importlib.import_module("knob_sections.measuring")
    records: list[Any] = []
    subject = measuring.Subject(network=fake_network(), machine=read_machine(), engine="fake", cores=1)
    asyncio.run(
        gaps.measure_gaps(
            subject,
            setups,
            batch=1,
            sequence_tokens=16,
            gaps_ms=(0, 50),
            requests=6,
            rounds=1,
            keep=records.append,
            say=lambda _: None,
        )
    )
    return records, list(gaps.gap_tables(records))


def test_pauses_are_kept_and_are_no_part_of_a_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six requests of 20 ms each, and pauses of 50 ms before them, take 6 x 70 ms and are 20 ms late each."""
    (tight, paused), _ = _measured(monkeypatch, _setup(busy=False))

    assert (tight.gap_ms, paused.gap_ms) == (0, 50)
    for record, least_ms in ((tight, 6 * 20), (paused, 6 * 70)):
        assert record.failure is None
        assert len(record.latency_ns) == 6
        assert 20e6 * 0.98 <= min(record.latency_ns) < 50e6
        assert record.elapsed_ns >= least_ms * 1e6 * 0.98
        assert record.elapsed_ns >= sum(record.latency_ns)
    assert paused.cpu_ns < 60e6  # it sleeps: far below the 120 ms of six busy requests


def test_cpu_time_is_that_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is busy for 20 ms a request uses 20 ms of CPU time for each, however long the pauses are."""
    (tight, paused), _ = _measured(monkeypatch, _setup(busy=True))

    for record in (tight, paused):
        # It stops by the wall clock: where others have the CPU too, it computes less.
        assert 0.2 * 20e6 <= record.cpu_ns / 6 <= 1.3 * 20e6


def test_an_arm_that_dies_is_a_row_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is below the tables, and the other arm has its values."""
    records, lines = _measured(monkeypatch, _setup(busy=False), _setup(busy=False, crash_at=20))

    assert [record.failure is None for record in records] == [True, True, False]
    assert any(line.startswith("* nothing asked failed once: instance 0 ") for line in lines)
