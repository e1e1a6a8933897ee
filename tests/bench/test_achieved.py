"""Achieved floating-point operations a second, and their share of a measured peak."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from pinstripe.bench import FORMAT, Record, Result, read_records, summarize
from pinstripe.bench.driver import sample_flops
from pinstripe.bench.inputs import TokenizedTexts
from pinstripe.cli.remarks import remarks
from pinstripe.configuration import TextSet, Workload
from pinstripe.models import EncodedText
from pinstripe.peak import Peak
from pinstripe.testing.fake_engine import fake_network

GOLDEN = Path(__file__).parent / "golden" / f"format-{FORMAT}.jsonl"


def _record(repeat: int, samples_per_s: float, peak_gflops: float | None) -> Record:
    """A repeat at 2 GFLOP a sample."""
    record = read_records(GOLDEN)[0]
    assert record.measurement is not None
    return replace(
        record,
        repeat=repeat,
        measurement=replace(record.measurement, samples_per_s=samples_per_s),
        sample_flops=2e9,
        peak=Peak(precision="float32", gflops=peak_gflops),
    )


def _result(*records: Record) -> Result:
    (trial,) = summarize(records)
    assert trial.result is not None
    return trial.result


def test_share_is_that_of_each_repeat_with_its_own_peak() -> None:
    """100, 60 and 80 GFLOP/s of peaks of 200, 100 and 100: shares of 50, 60 and 80 %, the median 60 %."""
    result = _result(_record(0, 50, 200), _record(1, 30, 100), _record(2, 40, 100))

    assert result.gflops == pytest.approx(80)
    assert result.peak_gflops == pytest.approx(100)
    assert result.peak_share == pytest.approx(0.6)


def test_no_peak_no_share() -> None:
    """Where no probe ran, the rate is there and the share is not made up."""
    result = _result(_record(0, 50, None))

    assert result.gflops == pytest.approx(100)
    assert (result.peak_gflops, result.peak_share) == (None, None)


def test_more_than_the_peak_is_flagged_as_a_bad_probe() -> None:
    """100 GFLOP/s of a peak of 80 is a fault of the peak, and is said; a share of 50 % is not."""
    (bad,) = summarize([_record(0, 50, 80)])
    (good,) = summarize([_record(0, 50, 200)])

    assert any("125%" in remark and "peak was measured badly" in remark for remark in remarks([bad]))
    assert not any("peak" in remark for remark in remarks([good]))


def test_operations_of_a_text_are_the_mean_of_the_file() -> None:
    """Of texts of 3 and 5 tokens: the mean of what fixed lengths of 3 and 5 take, which is more than 4 tokens take."""
    network = fake_network()
    rows = tuple(EncodedText(np.ones(length, np.int32)) for length in (3, 5))
    texts = TokenizedTexts(rows=rows, cut=0, pad=lambda _: pytest.fail("no batch is needed"))
    workload = Workload(scenario="offline", batch=1, texts=TextSet(file="a", sha256="", texts=2))
    three, four, five = (
        sample_flops(Workload(scenario="offline", batch=1, sequence_tokens=length), network) for length in (3, 4, 5)
    )

    assert three is not None
    assert four is not None
    assert five is not None
    assert sample_flops(workload, network, texts) == (three + five) / 2
    assert (three + five) / 2 > four
