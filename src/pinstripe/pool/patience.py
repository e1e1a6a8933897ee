"""How long a worker may be silent before it counts as hung."""

from collections import deque
from statistics import median
from typing import Final

from pinstripe.models import TokenBatch

__all__ = ["Patience"]

_LEAST_S: Final = 10.0
_FACTOR: Final = 10.0
_LONGEST_TICK_S: Final = 2.0
_FIRST_BATCH_S: Final = 300.0
"""Bound of the first batch, whose duration nothing predicts: compilers may run in it."""
_MOST_S: Final = 3600.0
"""Bound of any batch: predictions from much smaller ones can be far too high."""
_REMEMBERED: Final = 8
"""Batches of a size that its prediction rests on; old ones and single stalls do not count for ever."""


class Patience:
    """Predicts a batch's time from those of its size before it, and counts the time a worker makes no progress.

    Time is counted in ticks of the parent. A tick much longer than others means that the parent itself was suspended,
    in which the worker may have been as well; of such a gap only `_LONGEST_TICK_S` count.
    """

    def __init__(self, *, compiles_shapes: bool = False) -> None:
        """Begin without knowledge; `compiles_shapes` if every new shape may take as long as the first batch."""
        self._shapes: set[tuple[int, ...]] | None = set() if compiles_shapes else None
        # By size class: batches of up to 1, 2, 4, 8, … positions.
        self._ns_per_position: dict[int, deque[float]] = {}
        self._silent_s = 0.0

    def progress(self) -> None:
        """Note a sign of life: a batch was taken up or finished."""
        self._silent_s = 0.0

    def learn(self, batch: TokenBatch, duration_ns: int) -> None:
        """Note how long a batch took."""
        if self._shapes is not None:
            self._shapes.add(batch.ids.shape)
        recent = self._ns_per_position.setdefault(_size_class(batch), deque(maxlen=_REMEMBERED))
        recent.append(duration_ns / batch.ids.size)

    def predicted_s(self, batch: TokenBatch) -> float | None:
        """Return the time the batch should take, in seconds, from the nearest size seen; None before the first."""
        if not self._ns_per_position:
            return None
        wanted = _size_class(batch)
        nearest = min(self._ns_per_position, key=lambda known: abs(known - wanted))
        return median(self._ns_per_position[nearest]) * batch.ids.size / 1e9

    def limit_s(self, batch: TokenBatch) -> float:
        """Return how long the worker may be silent over this batch: max(10 s, 10 x predicted)."""
        predicted = self.predicted_s(batch)
        if predicted is None:
            return _FIRST_BATCH_S
        is_new = self._shapes is not None and batch.ids.shape not in self._shapes
        return min(_MOST_S, max(_FIRST_BATCH_S if is_new else _LEAST_S, _FACTOR * predicted))

    def tick(self, elapsed_s: float) -> float:
        """Count a tick that took `elapsed_s`; return the seconds without progress."""
        self._silent_s += min(elapsed_s, _LONGEST_TICK_S)
        return self._silent_s


def _size_class(batch: TokenBatch) -> int:
    return (batch.ids.size - 1).bit_length()
