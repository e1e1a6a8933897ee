"""Times of a machine on which they were measured."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from statistics import median
from typing import Final

from pinstripe.errors import ConfigurationError
from pinstripe.simulate.cost import CostPoint
from pinstripe.simulate.curve import LogCurve

__all__ = ["RecordedCost"]

_STEEPEST_IN_TOKENS: Final = 2.0
"""Attention grows with the square of the length."""


class RecordedCost:
    """A `Cost` through measured points.

    For each core count, the times of batches of equally many texts lie on a curve over their length, and the times of
    those curves on one over the number of texts, both of powers (`LogCurve`). Beyond the last number of texts time is
    proportional to it; beyond the last length it grows as from the last but one, at least proportionally and at most
    with the square.
    """

    def __init__(self, points: Iterable[CostPoint]) -> None:
        """Take the points; of several for the same batch, the median counts.

        Raises:
            ConfigurationError: There is none, or a number is not above 0.
        """
        times: defaultdict[int, defaultdict[int, defaultdict[int, list[float]]]]
        times = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        for point in points:
            if not min(point) > 0:
                raise ConfigurationError(f"a measured time needs numbers above 0, not {tuple(point)}; leave it out")
            times[point.cores][point.texts][point.tokens].append(point.seconds)
        if not times:
            raise ConfigurationError("there is no measured time to go by; measure some batches first")
        self._curves = {
            cores: {
                texts: LogCurve(
                    ((tokens, median(seconds)) for tokens, seconds in lengths.items()), steepest=_STEEPEST_IN_TOKENS
                )
                for texts, lengths in sizes.items()
            }
            for cores, sizes in times.items()
        }
        self._seconds = cache(self._interpolated)

    def __call__(self, cores: int, texts: int, tokens: int) -> float:
        """See `Cost`.

        Raises:
            ConfigurationError: Nothing was measured on instances of that many cores.
        """
        return self._seconds(cores, texts, tokens)

    def _interpolated(self, cores: int, texts: int, tokens: int) -> float:
        if cores not in self._curves:
            known = ", ".join(map(str, sorted(self._curves)))
            raise ConfigurationError(f"nothing was measured on {cores} cores, only on {known}; measure that too")
        times = ((size, curve(tokens)) for size, curve in self._curves[cores].items())
        return LogCurve(times, steepest=1.0)(texts)
