"""Batches of a fixed shape."""

import numpy as np
import pytest

from pinstripe.bench import fixed_batch
from pinstripe.errors import ConfigurationError
from pinstripe.testing.fake_engine import fake_network


def test_batch_has_the_shape_without_padding_or_repetition() -> None:
    """Every position is a real token of the vocabulary, and texts differ."""
    network = fake_network(vocab_size=1000, pad_token_id=3)
    batch = fixed_batch(network, 4, 64)

    assert batch.ids.shape == (4, 64)
    assert not batch.padded
    assert batch.ids.min() >= 0
    assert batch.ids.max() < 1000
    assert 3 not in batch.ids
    assert len({row.tobytes() for row in batch.ids}) == 4


def test_same_seed_gives_the_same_batch() -> None:
    """A repeat measures the same ids."""
    assert np.array_equal(fixed_batch(fake_network(), 2, 8).ids, fixed_batch(fake_network(), 2, 8).ids)


def test_text_beyond_the_network_is_refused() -> None:
    """A length that the network has no positions for is a usage error that says the limit."""
    with pytest.raises(ConfigurationError, match="at most 512"):
        fixed_batch(fake_network(), 1, 513)
