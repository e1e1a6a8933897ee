"""Token ids: of one text, and of a batch padded on the right."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["EncodedText", "TokenBatch", "TokenSources"]


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
    """

    ids: NDArray[np.int32]
    type_ids: NDArray[np.int32] | None = None
    sources: TokenSources | None = None

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
