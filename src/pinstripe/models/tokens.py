"""Token ids: of one text, and of a batch padded on the right."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import UsageError
from pinstripe.models.network import Network

__all__ = ["EncodedText", "TokenBatch", "TokenSources", "check_batch"]


@dataclass(frozen=True, slots=True)
class TokenSources:
    """Which characters of the text, or of which text of a pair, each token stands for.

    Attributes:
        offsets: int32 [tokens, 2], first character and the one behind the last, counted as Python does; (0, 0) for
            tokens of no text.
        sequences: int8 [tokens], 0 or 1 for the first or the second text; -1 for tokens of neither: special tokens
            that the tokenizer adds, and those of a prompt.
    """

    offsets: NDArray[np.int32]
    sequences: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class EncodedText:
    """Token ids of one text or pair of texts, special tokens included.

    Attributes:
        ids: int32 [tokens].
        type_ids: int32 [tokens] token types, or None for all 0.
        sources: Which characters the tokens stand for, where that was asked for.
        cut: Whether the text had more tokens than the model takes.
    """

    ids: NDArray[np.int32]
    type_ids: NDArray[np.int32] | None = None
    sources: TokenSources | None = None
    cut: bool = False

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Token ids of several texts, padded on the right to one length.

    Attributes:
        ids: int32 [batch, sequence].
        lengths: int32 [batch]; real tokens of each text, from 1 to the sequence length.
        type_ids: int32 [batch, sequence] token types (0 and 1 for the two texts of a pair), or None for all 0.
    """

    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    type_ids: NDArray[np.int32] | None = None

    @property
    def size(self) -> int:
        """Number of texts."""
        return int(self.ids.shape[0])

    @property
    def sequence_length(self) -> int:
        """Padded length in tokens."""
        return int(self.ids.shape[1])

    @property
    def tokens(self) -> int:
        """Real tokens, padding not counted."""
        return int(self.lengths.sum())

    @property
    def padded(self) -> bool:
        """Whether any text is shorter than the sequence length."""
        return self.tokens < self.ids.size

    def attention_mask(self) -> NDArray[np.int64]:
        """Return int64 [batch, sequence]: 1 for real tokens, 0 for padding."""
        positions = np.arange(self.sequence_length, dtype=np.int32)
        return (positions[None, :] < self.lengths[:, None]).astype(np.int64)


def check_batch(batch: TokenBatch, network: Network) -> None:
    """Raise if the network has no place for what a batch holds; frameworks answer that with wrong numbers, or crash.

    Takes some microseconds. Done before a batch reaches an engine, so that none has to.

    Raises:
        UsageError: The batch is longer than the network's positions, or a token id, or a token type of a network that
            has such, is beyond its table.
    """
    if batch.sequence_length > network.positions:
        raise UsageError(
            f"a batch has {batch.sequence_length} tokens a text, {network.name} takes {network.positions}; cut them"
        )
    _check_range("token id", batch.ids, network.vocab_size, network)
    if batch.type_ids is not None and network.type_vocab_size > 1:
        _check_range("token type", batch.type_ids, network.type_vocab_size, network)


def _check_range(what: str, values: NDArray[np.int32], count: int, network: Network) -> None:
    least, most = int(values.min()), int(values.max())
    if least < 0 or most >= count:
        wrong = least if least < 0 else most
        raise UsageError(f"a batch has the {what} {wrong}, {network.name} takes 0 to {count - 1}; is it this model's?")
