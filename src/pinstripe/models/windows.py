"""A context that is longer than the network takes, as windows that overlap."""

import numpy as np

from pinstripe.models.tokens import EncodedText, TokenSources

__all__ = ["cut_windows"]


def cut_windows(row: EncodedText, limit: int, stride: int) -> list[EncodedText]:
    """Return rows with the question and a part of the context each, as fast tokenizers of transformers cut them.

    Args:
        row: A question and its whole context, with sources.
        limit: Tokens of a window, at most.
        stride: Tokens of the context that neighbours share; where the question leaves less room than that, they share
            half of the room.

    Returns:
        At least one row, or none if the question leaves no room at all, or there is no context.
    """
    if row.sources is None:
        raise ValueError("windows are cut of a row that has its sources")
    context = np.flatnonzero(row.sources.sequences == 1)
    room = limit - (len(row) - len(context))
    if room < 1 or not len(context):
        return []
    first, stop = int(context[0]), int(context[-1]) + 1
    step = room - (stride if stride < room else room // 2)
    starts = range(first, max(first + 1, stop - room + step), step)
    return [_window(row, row.sources, np.r_[0:first, at : min(at + room, stop), stop : len(row)]) for at in starts]


def _window(row: EncodedText, sources: TokenSources, kept: np.ndarray[tuple[int], np.dtype[np.intp]]) -> EncodedText:
    return EncodedText(
        ids=row.ids[kept],
        type_ids=None if row.type_ids is None else row.type_ids[kept],
        sources=TokenSources(sources.offsets[kept], sources.sequences[kept]),
    )
