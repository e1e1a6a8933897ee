"""Which others run in one batch with an entry."""

from bisect import bisect_left
from collections.abc import Callable

from pinstripe.dispatch.entry import Entry
from pinstripe.dispatch.queue import Shelf

__all__ = ["gather_in_turn", "gather_near"]

PredictNs = Callable[[int, int], float]


def gather_near(shelf: Shelf, lead: Entry, *, tokens: int, most: int, predict_ns: PredictNs) -> tuple[Entry, ...]:
    """Return an entry with others of near-equal length, the nearest first.

    Another one joins as long as the batch keeps to its budget and takes no more time for it than it would take alone.

    Args:
        shelf: Where it and the others wait.
        lead: The entry that is in the batch whatever happens.
        tokens: Most tokens of the batch, padding included; the lead alone may have more.
        most: Most texts.
        predict_ns: Time of a batch by its texts and their padded length.
    """
    if lead.texts:
        return (lead,)
    most = min(most, max(1, tokens // lead.tokens))  # none of them is padded to less
    order = shelf.by_length()
    place = bisect_left(order, (lead.tokens, lead.number))
    shorter = [entry for _, _, entry in order[max(0, place - most) : place]]
    longer = [entry for _, _, entry in reversed(order[place + 1 : place + most])]
    batch, longest, time_ns = [lead], lead.tokens, predict_ns(1, lead.tokens)
    while len(batch) < most and (shorter or longer):
        side = _nearer(shorter, longer, lead.tokens)
        entry = side.pop()
        padded = max(longest, entry.tokens)
        joint_ns = predict_ns(len(batch) + 1, padded)
        if entry.texts or (len(batch) + 1) * padded > tokens or joint_ns - time_ns > predict_ns(1, entry.tokens):
            side.clear()  # those behind it are further away
            continue
        batch.append(entry)
        longest, time_ns = padded, joint_ns
    return tuple(batch)


def _nearer(shorter: list[Entry], longer: list[Entry], tokens: int) -> list[Entry]:
    """Return that of two lists, whose last is the nearest, whose nearest is nearer; the longer one of equals."""
    if not shorter or not longer:
        return shorter or longer
    return longer if longer[-1].tokens - tokens <= tokens - shorter[-1].tokens else shorter


def gather_in_turn(shelf: Shelf, *, tokens: int, most: int) -> tuple[Entry, ...]:
    """Return the first entries of a shelf that is not empty, in turn, as many as the budget allows.

    Args:
        shelf: Where they wait.
        tokens: Most tokens of the batch, padding included; the first alone may have more.
        most: Most texts.
    """
    batch: list[Entry] = []
    longest = 0
    for _, _, entry in shelf.in_turn():
        padded = max(longest, entry.tokens)
        if batch and (entry.texts or len(batch) >= most or (len(batch) + 1) * padded > tokens):
            break
        batch.append(entry)
        longest = padded
        if entry.texts:
            break
    return tuple(batch)
