"""Batches for a network: of a given shape, or of given texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.configuration import BatchRule, InstanceGroup
from pinstripe.dispatch import make_class_batches
from pinstripe.errors import ConfigurationError, ModelError
from pinstripe.models import EncodedText, Network, Text, TokenBatch, load_tokenizer

__all__ = ["TokenizedTexts", "fixed_batch", "fixed_texts", "split_batch", "tokenize"]

_FIXED_TEXTS: Final = 256
"""Different texts of one length: more than caches of results would be made for, few enough to be made at once."""


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


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """The texts of a file as a model's tokens.

    Attributes:
        rows: Each text's tokens, in the file's order.
        cut: How many of them were longer than the model takes, and were cut.
        pad: Makes a batch of rows.
    """

    rows: tuple[EncodedText, ...]
    cut: int
    pad: Callable[[Sequence[EncodedText]], TokenBatch]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each text."""
        return np.array([len(row) for row in self.rows], dtype=np.int64)

    def batches(
        self, rule: BatchRule, groups: Sequence[InstanceGroup] = (), *, last_for: int | None = None
    ) -> tuple[TokenBatch, ...]:
        """Return all texts in batches, in the order in which they should run; see `make_class_batches`.

        Args:
            rule: How to batch.
            groups: Groups of instances whose length classes are kept apart; none for one class.
            last_for: See `make_class_batches`.
        """
        batches = make_class_batches(self.lengths, [rule] * max(1, len(groups)), groups, last_for=last_for)
        return tuple(self.pad([self.rows[index] for index in batch]) for batch in batches)


def fixed_texts(network: Network, sequence_tokens: int) -> TokenizedTexts:
    """Return texts of random ids, all of one length; see `fixed_batch`.

    Raises:
        ConfigurationError: The network takes no texts of that length.
    """
    batch = fixed_batch(network, _FIXED_TEXTS, sequence_tokens)
    return TokenizedTexts(rows=tuple(EncodedText(ids) for ids in batch.ids), cut=0, pad=_stacked)


def _stacked(rows: Sequence[EncodedText]) -> TokenBatch:
    ids = np.stack([row.ids for row in rows])
    return TokenBatch(ids=ids, lengths=np.full(len(rows), ids.shape[1], np.int32))


def tokenize(network: Network, texts: Sequence[Text]) -> TokenizedTexts:
    """Return texts as the model's tokens, with its default prompt, cut at its limit.

    Raises:
        ModelError: The model has no tokenizer, or its files are damaged.
        UsageError: A text cannot be tokenized; the message names its index.
    """
    try:
        tokenizer = load_tokenizer(network)
    except ModelError as error:
        raise ModelError(f"{network.name} cannot read texts: {error}; or measure fixed lengths with --seq") from error
    rows = tokenizer.encode(texts)
    return TokenizedTexts(rows=tuple(rows), cut=sum(row.cut for row in rows), pad=tokenizer.pad)


def split_batch(batch: TokenBatch, parts: int) -> list[TokenBatch]:
    """Return a batch's texts in at most `parts` parts of near-equal number, none empty, none with needless padding."""
    pieces = np.array_split(np.arange(batch.size), min(parts, batch.size))
    return [_rows(batch, int(piece[0]), int(piece[-1]) + 1) for piece in pieces]


def _rows(batch: TokenBatch, start: int, stop: int) -> TokenBatch:
    lengths = batch.lengths[start:stop]
    longest = int(lengths.max())
    return TokenBatch(
        ids=np.ascontiguousarray(batch.ids[start:stop, :longest]),
        lengths=lengths,
        type_ids=None if batch.type_ids is None else np.ascontiguousarray(batch.type_ids[start:stop, :longest]),
    )
