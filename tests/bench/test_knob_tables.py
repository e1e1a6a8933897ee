"""Tables of `benchmarks/knobs.py`: what its readings rest on."""

import importlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest
from msgspec.structs import replace

from pinstripe.bench import Record, read_records
from pinstripe.configuration import Workload

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
GOLDEN = Path(__file__).parent / "golden" / "format-1.jsonl"
ROUNDS = 6


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark's module."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("knob_sections.tables")


def _arm(allocator: str | None, rate: float, faults: int) -> Iterable[Record]:
    """Records of an arm whose rate wavers by 1 % from round to round."""
    record = read_records(GOLDEN)[0]
    assert record.measurement is not None
    assert record.surroundings is not None
    for repeat in range(ROUNDS):
        yield replace(
            record,
            repeat=repeat,
            configuration=replace(record.configuration, knobs={} if allocator is None else {"allocator": allocator}),
            workload=Workload(scenario="single-stream", batch=2, sequence_tokens=512),
            measurement=replace(record.measurement, samples_per_s=rate * (1 + (repeat % 3 - 1) / 100)),
            surroundings=replace(record.surroundings, minor_faults=10 * faults, major_faults=0, window_forwards=10),
        )


@pytest.mark.parametrize(
    ("tuned", "other", "share", "reading"),
    [
        # log 1.21 / log 1.4641 = 1/2, since 1.21 * 1.21 = 1.4641; 1.46 is a little less.
        ((121, 10), (146, 10), "50%", "confirmed"),
        ((104, 10), (144, 10), "11%", "refuted: fewer faults, little gain"),
        ((144, 4000), (144, 10), "100%", "refuted: no fewer faults"),
        ((100, 10), (100, 10), "", "nothing to explain"),
        ((100, 10), (90, 10), "", "nothing to explain"),
    ],
)
def test_the_hypothesis_about_glibc_is_read_off(
    tables: ModuleType, tuned: tuple[float, int], other: tuple[float, int], share: str, reading: str
) -> None:
    """Of glibc at 100 a second and 5000 faults a forward: what page faults explain is told from what they do not."""
    records = [*_arm(None, 100, 5000), *_arm("glibc-tuned", *tuned), *_arm("tcmalloc", *other)]
    *_, row = tables.hypothesis_table(records)
    cells = [cell.strip() for cell in row.strip("| ").split(" | ")]

    assert cells[1:5] == ["2 x 512", "5,000", f"{tuned[1]:,}", f"{other[1]:,}"]
    assert cells[-2:] == [share, reading]


def test_base_and_noise_floor_are_rows_of_their_own(tables: ModuleType) -> None:
    """The base shows its time, what it is compared with a ratio, in bold only where that decides."""
    records = [*_arm(None, 100, 5000), *_arm("auto", 100, 5000), *_arm("tcmalloc", 150, 0)]
    lines = list(tables.record_tables(records))

    assert "| nothing asked | 30.3 ms |" in lines
    assert "| the same again (A/A) | 1.00 (1.00 to 1.00) |" in lines
    assert "| allocator=tcmalloc | **1.50 (1.50 to 1.50)** |" in lines
    assert "| the same again (A/A) | 5,000 |" in lines
