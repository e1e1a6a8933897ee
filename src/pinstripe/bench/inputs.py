"""Batches of a given shape for a network."""

import numpy as np

from pinstripe.errors import ConfigurationError
from pinstripe.models import Network, TokenBatch

__all__ = ["fixed_batch"]


def fixed_batch(network: Network, batch: int, sequence_tokens: int, seed: int = 0) -> TokenBatch:
    """Return `batch` texts of `sequence_tokens` random ids each, without padding.

    The time of a float32 encoder does not depend on the ids; they differ so that no cache can answer for them.

    Raises:
        ConfigurationError: The network takes no texts of that length.
    """
    if sequence_tokens > network.positions:
        raise ConfigurationError(
            f"sequence length {sequence_tokens} is beyond what {network.name} takes; use at most {network.positions}"
        )
    generator = np.random.default_rng(seed)
    ids = generator.integers(0, network.vocab_size, (batch, sequence_tokens), dtype=np.int32)
    ids[ids == network.pad_token_id] = (network.pad_token_id + 1) % network.vocab_size
    return TokenBatch(ids=ids, lengths=np.full(batch, sequence_tokens, np.int32))
