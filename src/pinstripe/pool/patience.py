"""How long a worker may be silent before it counts as hung."""

from typing import Final

from pinstripe.models import TokenBatch

__all__ = ["Patience"]

_LEAST_S: Final = 10.0
_FACTOR: Final = 10.0
_LONGEST_TICK_S: Final = 2.0
_FIRST_BATCH_S: Final = 300.0
"""Bound of the first batch, whose duration nothing predicts: compilers may run in it."""


class Patience:
    """Predicts a batch's time from those before it, and counts the time a worker makes no progress.

    Time is counted in ticks of the parent. A tick much longer than others means that the parent itself was suspended,
    in which the worker may have been as well; of such a gap only `_LONGEST_TICK_S` count.
    """

    def __init__(self) -> None:
        self._slowest_ns_per_token = 0.0
        self._silent_s = 0.0

    def progress(self) -> None:
        """Note a sign of life: a batch was taken up or finished."""
        self._silent_s = 0.0

    def learn(self, batch: TokenBatch, duration_ns: int) -> None:
        """Note how long a batch took."""
        self._slowest_ns_per_token = max(self._slowest_ns_per_token, duration_ns / batch.ids.size)

    def predicted_s(self, batch: TokenBatch) -> float | None:
        """Return the time the batch should take at the slowest pace seen, in seconds; None before the first."""
        if self._slowest_ns_per_token == 0.0:
            return None
        return self._slowest_ns_per_token * batch.ids.size / 1e9

    def limit_s(self, batch: TokenBatch) -> float:
        """Return how long the worker may be silent over this batch: max(10 s, 10 x predicted)."""
        predicted = self.predicted_s(batch)
        return _FIRST_BATCH_S if predicted is None else max(_LEAST_S, _FACTOR * predicted)

    def tick(self, elapsed_s: float) -> float:
        """Count a tick that took `elapsed_s`; return the seconds without progress."""
        self._silent_s += min(elapsed_s, _LONGEST_TICK_S)
        return self._silent_s
