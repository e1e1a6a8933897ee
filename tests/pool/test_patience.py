"""When silence means that a worker hangs."""

import numpy as np

from pinstripe.models import TokenBatch
from pinstripe.pool.patience import Patience


def _batch(size: int, tokens: int) -> TokenBatch:
    return TokenBatch(ids=np.ones((size, tokens), np.int32), lengths=np.full(size, tokens, np.int32))


def test_limit_is_ten_seconds_for_short_batches() -> None:
    """A batch of a millisecond may take 10 s before its worker counts as hung."""
    patience = Patience()
    patience.learn(_batch(1, 100), 1_000_000)

    assert patience.limit_s(_batch(1, 100)) == 10


def test_limit_is_ten_times_the_predicted_time_for_long_batches() -> None:
    """1600 tokens at 0.1 s per 100 tokens are predicted to take 1.6 s; 16 s is the limit."""
    patience = Patience()
    patience.learn(_batch(1, 100), 100_000_000)

    assert patience.predicted_s(_batch(4, 400)) == 1.6
    assert patience.limit_s(_batch(4, 400)) == 16


def test_prediction_is_that_of_like_batches() -> None:
    """Tiny batches, whose time is all overhead, say nothing of large ones once a large one was seen."""
    patience = Patience()
    patience.learn(_batch(1, 2), 500_000_000)
    patience.learn(_batch(8, 512), 1_000_000_000)

    assert patience.limit_s(_batch(8, 512)) == 10
    assert patience.limit_s(_batch(8, 500)) <= 10
    assert patience.predicted_s(_batch(1, 2)) == 0.5


def test_one_stall_is_forgotten() -> None:
    """A batch that once took a second among many of 20 ms does not raise the prediction."""
    patience = Patience()
    for duration_ms in (20, 1000, 20, 20, 20):
        patience.learn(_batch(1, 128), duration_ms * 1_000_000)

    assert patience.predicted_s(_batch(1, 128)) == 0.02


def test_no_prediction_is_patient_for_ever() -> None:
    """Half a second for two tokens does not make 64 x 512 wait for days: an hour is the most."""
    patience = Patience()
    patience.learn(_batch(1, 2), 500_000_000)

    assert patience.limit_s(_batch(64, 512)) == 3600


def test_first_batch_has_minutes() -> None:
    """Nothing predicts the first batch, in which a framework may compile."""
    assert Patience().limit_s(_batch(1, 8)) >= 60


def test_suspended_parent_is_discounted() -> None:
    """An hour in which the parent slept is no sign that the worker hangs."""
    patience = Patience()
    patience.learn(_batch(1, 8), 1_000_000)

    assert patience.tick(3600.0) < 10
    assert sum(1 for _ in range(20) if patience.tick(0.5) <= 10) >= 15


def test_progress_starts_the_count_anew() -> None:
    """Silence is counted from the last sign of life."""
    patience = Patience()
    for _ in range(10):
        patience.tick(1.0)
    patience.progress()

    assert patience.tick(0.5) == 0.5


def test_an_engine_that_compiles_shapes_gets_time_for_each_new_one() -> None:
    """XLA takes seconds to minutes when a batch has a shape it has not seen; afterwards it is as quick as others."""
    patience = Patience(compiles_shapes=True)
    patience.learn(_batch(1, 8), 10_000_000)

    assert patience.limit_s(_batch(1, 8)) < 60
    assert patience.limit_s(_batch(1, 9)) >= 60
    patience.learn(_batch(1, 9), 10_000_000)
    assert patience.limit_s(_batch(1, 9)) < 60
