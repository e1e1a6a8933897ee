"""What scenarios over real lengths measure, on executors whose times are known to the nanosecond.

The executors take 1 ms for each token of a batch, padding included. One pass over BATCHES, 7 texts of 31 tokens, padded
to 35, is worked out by hand in the tests.
"""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from pinstripe.bench.measurement import Measurement
from pinstripe.bench.scenarios import Limits
from pinstripe.bench.text_scenarios import offline_texts, single_stream_texts
from pinstripe.errors import WorkerError
from pinstripe.models import TokenBatch
from pinstripe.testing.fake_executor import FakeExecutor

MS = 1_000_000
ONE_PASS = Limits(min_s=0.001, min_forwards=1, max_s=0.001)


def _batch(*lengths: int) -> TokenBatch:
    return TokenBatch(ids=np.ones((len(lengths), max(lengths)), np.int32), lengths=np.array(lengths, np.int32))


BATCHES = (_batch(8, 6), _batch(5, 5), _batch(4, 2), _batch(1))


def _executor(capacity: int, fail_at: int | None = None) -> FakeExecutor:
    return FakeExecutor(capacity, lambda _, batch: batch.ids.size * MS, fail_at)


def _offline(executor: FakeExecutor, batches: Sequence[TokenBatch] = BATCHES, limits: Limits = ONE_PASS) -> Measurement:
    return asyncio.run(offline_texts(executor, batches, limits))


def _single_stream(
    executor: FakeExecutor, batches: Sequence[TokenBatch] = BATCHES, limits: Limits = ONE_PASS
) -> Measurement:
    return asyncio.run(single_stream_texts(executor, batches, limits))


def test_offline_pass_is_dealt_to_whoever_is_free() -> None:
    """Two instances take 16 + 1 and 10 + 8 ms: 7 texts in 18 ms, the last of which one instance idles."""
    measured = _offline(_executor(2))

    assert measured.window_ns == 18 * MS
    assert set(measured.engine_ns) == {(16 * MS, 1 * MS), (10 * MS, 8 * MS)}
    assert sorted(measured.latency_ns) == [1 * MS, 8 * MS, 10 * MS, 16 * MS]
    assert measured.samples == 7
    assert measured.samples_per_s == pytest.approx(7 / 0.018)
    assert measured.tokens_per_s == pytest.approx(31 / 0.018)
    assert measured.padding_fraction == pytest.approx(4 / 35)


def test_passes_are_repeated_until_the_minimum_time_and_counted_whole() -> None:
    """Passes of 18 ms fill a second at the 56th; rates are those of one pass."""
    measured = _offline(_executor(2), limits=Limits(min_s=1.0, min_forwards=1))

    assert measured.window_ns == 56 * 18 * MS
    assert measured.samples == 56 * 7
    assert measured.samples_per_s == pytest.approx(7 / 0.018)
    assert measured.padding_fraction == pytest.approx(4 / 35)
    assert measured.complete


def test_a_pass_is_never_cut() -> None:
    """A bound below one pass still measures every text of the file once, and says that forwards are lacking."""
    measured = _offline(_executor(1), limits=Limits(min_s=0.001, min_forwards=10, max_s=0.002))

    assert measured.samples == 7
    assert measured.window_ns == 35 * MS
    assert not measured.complete


def test_single_stream_deals_a_batch_out_over_the_instances() -> None:
    """Parts of 8 and 6, 5 and 5, 4 and 2 tokens, and a lone text: 8 + 5 + 4 + 1 ms, and parts need no padding."""
    measured = _single_stream(_executor(2))

    assert measured.latency_ns == (8 * MS, 5 * MS, 4 * MS, 1 * MS)
    assert measured.samples_per_s == pytest.approx(7 / 0.018)
    assert measured.tokens_per_s == pytest.approx(31 / 0.018)
    assert measured.padding_fraction == 0
    assert measured.engine_ns == ((8 * MS, 5 * MS, 4 * MS, 1 * MS), (6 * MS, 5 * MS, 2 * MS))


def test_single_stream_parts_are_uneven_where_they_must_be() -> None:
    """Three texts over two instances are two and one: 9 + 9 tokens against 1; the slower part is the latency."""
    measured = _single_stream(_executor(2), [_batch(9, 7, 1)])

    assert measured.latency_ns == (18 * MS,)
    assert measured.tokens == 17
    assert measured.padded_tokens == 19


def test_one_instance_has_the_padding_of_whole_batches() -> None:
    """Nothing is split over one instance: both scenarios take 35 ms and have 4 of 35 tokens of padding."""
    for measured in (_single_stream(_executor(1)), _offline(_executor(1))):
        assert measured.window_ns == 35 * MS
        assert measured.padding_fraction == pytest.approx(4 / 35)


def test_instances_without_work_do_not_matter() -> None:
    """A file of a single text keeps one of three instances busy."""
    for measured in (_single_stream(_executor(3), [_batch(4)]), _offline(_executor(3), [_batch(4)])):
        assert sorted(map(len, measured.engine_ns)) == [0, 0, 1]
        assert measured.samples_per_s == pytest.approx(250)


def test_batches_of_different_sizes_warm_up_until_steady() -> None:
    """Sizes from 1 to 16 tokens do not look like times that fall; slow first forwards are left out."""
    calls = iter(range(10**6))
    executor = FakeExecutor(1, lambda _, batch: batch.ids.size * (50 if next(calls) < 5 else 1) * MS)
    measured = _offline(executor)

    assert measured.warmup.steady
    assert measured.warmup.batches > 5
    assert measured.window_ns == 35 * MS


def test_failure_ends_the_measurement() -> None:
    """A batch that fails is not left out of the numbers: the measurement fails, and nobody waits for ever."""
    for scenario in (_single_stream, _offline):
        with pytest.raises(WorkerError, match="submission 300"):
            scenario(_executor(2, fail_at=300), limits=Limits(min_s=10, min_forwards=1))
