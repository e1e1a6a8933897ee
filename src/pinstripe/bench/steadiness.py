"""When a warm-up has done its work."""

from statistics import median
from typing import Final

__all__ = ["Steadiness"]

_GROUP: Final = 4
"""Batches that are compared with as many before them."""
_GAIN: Final = 0.05
"""Times have settled when a group is not faster than the one before by more than this share."""
_LEAST_S: Final = 0.3
"""Clocks and caches need some time however short the batches are."""


class Steadiness:
    """Watches the durations of warm-up batches until they stop falling, within a bound."""

    def __init__(self, max_s: float) -> None:
        """Give up after `max_s` seconds of batches."""
        self._max_s = max_s
        self._durations: list[int] = []
        self._elapsed_s = 0.0
        self.settled = False
        self.over = False

    def reached(self, duration_ns: int) -> bool:
        """Note a batch's duration; return whether the warm-up is over."""
        self._durations.append(duration_ns)
        self._elapsed_s += duration_ns / 1e9
        if len(self._durations) >= 2 * _GROUP and self._elapsed_s >= _LEAST_S:
            earlier = median(self._durations[-2 * _GROUP : -_GROUP])
            self.settled = median(self._durations[-_GROUP:]) >= earlier * (1 - _GAIN)
        out_of_time = self._elapsed_s >= self._max_s and len(self._durations) > 1
        self.over = self.over or self.settled or out_of_time
        return self.over
