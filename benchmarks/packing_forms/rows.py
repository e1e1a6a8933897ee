"""Texts laid out in rows of a batch: one a row, or several one after the other."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch", "lay_out", "pack"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of texts.

    Attributes:
        texts: Indices of the texts, row by row.
        lengths: Tokens of the texts of each row.
        ids: int64 [rows, width], 0 for padding.
        positions: int64 [rows, width], from 0 on in each text.
        segments: int64 [rows, width]; number of the text in its row, -1 for padding.
    """

    texts: list[int]
    lengths: list[list[int]]
    ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    segments: NDArray[np.int64]

    def means(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the mean vector of each text, [texts, hidden size], from hidden states [rows, width, hidden size]."""
        lengths = np.concatenate(self.lengths)
        starts = np.cumsum(lengths) - lengths
        sums: NDArray[np.float32] = np.add.reduceat(hidden[self.segments >= 0], starts, axis=0)
        return np.asarray(sums / lengths[:, None], dtype=np.float32)


def lay_out(tokens: Sequence[NDArray[np.int32]], rows: Sequence[Sequence[int]]) -> Batch:
    """Return a batch with the given texts in its rows."""
    lengths = [[len(tokens[text]) for text in row] for row in rows]
    shape = (len(rows), max(map(sum, lengths)))
    ids, positions, segments = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    for number, row in enumerate(rows):
        start = 0
        for segment, text in enumerate(row):
            place = (number, slice(start, start + len(tokens[text])))
            ids[place], positions[place], segments[place] = tokens[text], np.arange(len(tokens[text])), segment
            start += len(tokens[text])
    return Batch([text for row in rows for text in row], lengths, ids, positions, segments)


def pack(lengths: NDArray[np.int64], texts: Iterable[int], row_tokens: int) -> list[list[int]]:
    """Return rows of near-equal length, of `row_tokens` at most on average.

    The longest text first, each into the row with the fewest tokens (Graham 1969, "Bounds on multiprocessing timing
    anomalies"): so batches of rows have next to no padding, and there is none where each row is a batch.
    """
    longest_first = sorted(texts, key=lambda text: -lengths[text])
    rows: list[list[int]] = [[] for _ in range(-(-int(lengths[longest_first].sum()) // row_tokens))]
    filled = [(0, number) for number in range(len(rows))]
    for text in longest_first:
        tokens, number = filled[0]
        rows[number].append(text)
        heapq.heapreplace(filled, (tokens + int(lengths[text]), number))
    return [row for row in rows if row]
