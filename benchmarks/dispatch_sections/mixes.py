"""The texts that arrive, by their lengths alone: an encoder's time does not depend on what they say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.models import EncodedText, TokenBatch

__all__ = ["MIXES", "Mix", "pad", "texts_of"]

_VOCABULARY: Final = 20_000
_QUERIES: Final = 0.9


@dataclass(frozen=True, slots=True)
class Mix:
    """Lengths of texts.

    Attributes:
        name: For tables.
        lengths: Draws some, [texts], none above the given most.
        bounds: Upper ends of the length classes that results are told apart by; the rest is one more.
    """

    name: str
    lengths: Callable[[np.random.Generator, int, int], NDArray[np.int64]]
    bounds: tuple[int, ...]


def _queries(random: np.random.Generator, count: int, most: int) -> NDArray[np.int64]:
    """Draw search queries: median 12 tokens, nine in ten of 7 to 20, none above 32."""
    return np.clip(np.rint(random.lognormal(np.log(12), 0.32, count)), 4, min(32, most)).astype(np.int64)


def _documents(random: np.random.Generator, count: int, most: int) -> NDArray[np.int64]:
    """Draw documents: between half of what the model takes and all of it, most of them cut at that."""
    return np.minimum(random.integers(most // 2, 2 * most, count), most)


def _search(random: np.random.Generator, count: int, most: int) -> NDArray[np.int64]:
    return np.where(random.random(count) < _QUERIES, _queries(random, count, most), _documents(random, count, most))


def _squad(random: np.random.Generator, count: int, most: int) -> NDArray[np.int64]:
    """Draw questions with their passages: 40 to 384 tokens (the range of MLPerf's SQuAD), median 160."""
    return np.clip(np.rint(random.lognormal(np.log(160), 0.4, count)), 40, min(384, most)).astype(np.int64)


MIXES: Final[Mapping[str, Mix]] = {
    "queries": Mix("queries only", _queries, ()),
    "search": Mix("90 % queries, 10 % documents", _search, (32,)),
    "squad": Mix("SQuAD-like", _squad, (128,)),
}


def texts_of(mix: Mix, count: int, most: int, seed: int) -> list[EncodedText]:
    """Return texts of a mix, of random token ids."""
    random = np.random.default_rng(seed)
    lengths = mix.lengths(random, count, most)
    ids = random.integers(1000, _VOCABULARY, most, dtype=np.int32)
    return [EncodedText(ids[:length]) for length in lengths.tolist()]


def pad(rows: Any) -> TokenBatch:
    """Return texts as a batch."""
    lengths = np.array([len(row) for row in rows], dtype=np.int32)
    ids = np.zeros((len(rows), int(lengths.max())), dtype=np.int32)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row.ids
    return TokenBatch(ids, lengths)
