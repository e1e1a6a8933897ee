"""A curve through points that are far apart."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

__all__ = ["LogCurve"]


class LogCurve:
    """Straight lines between points on two logarithmic axes: powers, as times of more work are."""

    def __init__(self, points: Iterable[tuple[float, float]], *, steepest: float) -> None:
        """Describe it.

        Before the first point the first line goes on with a power of 0 to 1: less work takes no longer, and less than
        proportionally less. Behind the last point the last line goes on with a power of 1 to `steepest`. A single
        point has a power of 1 on both sides.

        Args:
            points: (x, y), at least one, both above 0, each x once.
            steepest: At least 1.
        """
        logs = sorted((math.log(x), math.log(y)) for x, y in points)
        self._x = [x for x, _ in logs]
        self._y = [y for _, y in logs]
        powers = [(y - before_y) / (x - before_x) for (before_x, before_y), (x, y) in pairwise(logs)] or [1.0]
        first, last = min(max(powers[0], 0.0), 1.0), min(max(powers[-1], 1.0), steepest)
        # One line more at each end; a line begins at the point before it, the first one at the first point.
        self._powers = [first, *(powers if len(logs) > 1 else ()), last]

    def __call__(self, x: float) -> float:
        """Return y at an x above 0."""
        log_x = math.log(x)
        line = bisect_right(self._x, log_x)
        start = max(line - 1, 0)
        return math.exp(self._y[start] + self._powers[line] * (log_x - self._x[start]))
