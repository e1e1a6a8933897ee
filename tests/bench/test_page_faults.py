"""Page faults of workers are counted in the window alone."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from pinstripe.bench import Limits, Measurement, Record, Surroundings, offline, read_records, single_stream, summarize
from pinstripe.bench.page_faults import PageFaults, read_page_faults
from pinstripe.bench.watch import watching
from pinstripe.engines import Artefact, LoadRequest
from pinstripe.machine import read_machine
from pinstripe.models import TokenBatch
from pinstripe.pool import Pool, WorkerSpec
from pinstripe.testing.fake_engine import fake_network

GOLDEN = Path(__file__).parent / "golden"
# Below 4 MiB, from which on numpy asks for huge pages, which come with one fault each.
GROWTH_BYTES = 2 << 20
GROWTH_PAGES = GROWTH_BYTES // os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # Fields 10 and 12 of proc_pid_stat(5); the name may hold blanks and parentheses.
        ("7 (a) S 1 (x)) S 1 7 7 0 -1 4194560 1234 99 5 88 0 0 0 0 20 0 1 0\n", PageFaults(1234, 5)),
        ("7 (python) S 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0\n", None),
        ("", None),
    ],
    ids=["odd name", "not counted", "empty"],
)
def test_counts_of_procfs(line: str, expected: PageFaults | None, tmp_path: Path) -> None:
    """They are read by their place behind the name; a kernel that does not count is not one without faults."""
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/stat").write_text(line)

    assert read_page_faults(7, tmp_path) == expected
    assert read_page_faults(8, tmp_path) is None


@pytest.mark.parametrize("scenario", [single_stream, offline])
def test_pages_that_each_forward_touches_are_counted(scenario: Callable[..., Awaitable[Measurement]]) -> None:
    """Forwards that take and fill 2 MiB each have 512 faults of 4 KiB, and those of the warm-up are not among them."""
    if read_page_faults(os.getpid()) is None:
        pytest.skip("this kernel does not count page faults")
    machine = read_machine()
    if machine.thp == "always":
        pytest.skip("with huge pages for everybody, 2 MiB are one fault")
    load = LoadRequest(
        network=fake_network(),
        artefact=Artefact(format="none", path="", origin="model"),
        threads=1,
        options={"grow_bytes": GROWTH_BYTES, "fixed_us": 5000},
    )
    batch = TokenBatch(ids=np.ones((1, 16), np.int32), lengths=np.full(1, 16, np.int32))
    limits = Limits(min_s=0.2, min_forwards=20, max_s=10, warmup_max_s=0.1)

    async def measure() -> tuple[Measurement, Surroundings]:
        async with (
            Pool([WorkerSpec(engine="fake", load=load, cpus=None)] * 2) as pool,
            watching(pool, machine) as watch,
        ):
            measured = await scenario(pool, batch, limits, watch.window_opens)
            return measured, watch.surroundings()

    measured, seen = asyncio.run(measure())
    assert seen.minor_faults is not None
    assert seen.window_forwards is not None
    counted = sum(map(len, measured.engine_ns))
    assert counted <= seen.window_forwards <= counted + 2 * 2
    assert seen.minor_faults / seen.window_forwards == pytest.approx(GROWTH_PAGES, rel=0.1)


@pytest.fixture
def record() -> Record:
    """A record of an older version, which did not count them."""
    return read_records(GOLDEN / "format-1.jsonl")[0]


def _faults_per_forward(*records: Record) -> float | None:
    (trial,) = summarize(records)
    assert trial.result is not None
    return trial.result.page_faults_per_forward


def test_page_faults_of_a_trial(record: Record) -> None:
    """300, 10 and 20 faults a forward have the median 20; rounds in which nothing was counted do not take part."""
    assert record.surroundings is not None
    assert _faults_per_forward(record) is None
    counted = [
        replace(
            record,
            repeat=number,
            surroundings=replace(record.surroundings, minor_faults=minor, major_faults=2, window_forwards=forwards),
        )
        for number, (minor, forwards) in enumerate([(2998, 10), (98, 10), (1998, 100)])
    ]

    assert _faults_per_forward(*counted) == 20
    assert _faults_per_forward(*counted, replace(record, repeat=3)) == 20
