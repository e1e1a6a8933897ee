"""Times of two-socket machines that were published."""

import math
from bisect import bisect_left
from functools import cache
from typing import Final, Literal

from pinstripe.errors import ConfigurationError
from pinstripe.simulate.curve import LogCurve
from pinstripe.simulate.published_figures import CASCADE_LAKE_MS, CASCADE_LAKE_TEXTS, ICE_LAKE_MS

__all__ = ["PublishedCost", "PublishedMachine"]

PublishedMachine = Literal["2x24", "2x40"]
_ATTENTION_PARITY_TOKENS: Final = 6 * 768
"""Length at which attention takes as many operations as the weights: for each token and layer these take 24 h² and
attention 4 h s, with h = 768 in BERT-base (see `pinstripe.models.forward_flops`)."""


class PublishedCost:
    """A `Cost` of BERT-base on 2 x 24 or 2 x 40 cores: as published, and interpolated or extrapolated from that.

    *Published*: `2x24` has texts of 20, 32, 128, 384 and 512 tokens on 48 cores in batches of 8, on 24 of 4, on 12 of 2
    and on 6 of 1, while all cores of the machine were busy. `2x40` has one text of these lengths on 1, 4, 16, 40 and 80
    cores, alone on the machine. These are single runs, kept as they are: 40 cores beat 80 at all lengths but 384, and
    8 x 20 tokens took longer on 48 cores than 8 x 32 did, the one place where a longer batch takes less time.

    *Interpolated*: other batches of the same core count lie between the published ones by the operations of their
    matrix products, n (s + s² / 4608) for n texts of s tokens, on two logarithmic axes. So 4 x 32 tokens take about as
    long as 1 x 128. Other core counts lie between the two next to them, for the same operations, in the same way.

    *Extrapolated*: above the largest published batch time is proportional to operations, below the smallest it falls
    like between the smallest two, and not at all on 48 cores, where it does not fall there. On less than 6 cores of
    `2x24` time is inversely proportional to cores, as it about is from 1 to 4 on the other machine.
    """

    def __init__(self, machine: PublishedMachine) -> None:
        """Choose the machine."""
        figures = {"2x24": CASCADE_LAKE_MS, "2x40": ICE_LAKE_MS}[machine]
        texts = {"2x24": CASCADE_LAKE_TEXTS, "2x40": dict.fromkeys(ICE_LAKE_MS, 1)}[machine]
        self._machine = machine
        self._curves = {
            cores: LogCurve(((_work(texts[cores], tokens), ms / 1e3) for tokens, ms in row.items()), steepest=1.0)
            for cores, row in figures.items()
        }
        self._cores = sorted(figures)
        self._seconds = cache(self._interpolated)

    def __call__(self, cores: int, texts: int, tokens: int) -> float:
        """See `Cost`.

        Raises:
            ConfigurationError: The machine does not have so many cores.
        """
        return self._seconds(cores, texts, tokens)

    def _interpolated(self, cores: int, texts: int, tokens: int) -> float:
        if not 1 <= cores <= self._cores[-1]:
            raise ConfigurationError(
                f"an instance of {cores} cores does not fit {self._machine}; use 1 to {self._cores[-1]}"
            )
        work = _work(texts, tokens)
        place = bisect_left(self._cores, cores)
        above = self._cores[place]
        seconds_above = self._curves[above](work)
        if above == cores:
            return seconds_above
        if place == 0:
            return seconds_above * above / cores
        below = self._cores[place - 1]
        seconds_below = self._curves[below](work)
        power = math.log(seconds_above / seconds_below) / math.log(above / below)
        return seconds_below * math.exp(power * math.log(cores / below))


def _work(texts: int, tokens: int) -> float:
    """Return the operations of a batch, in those of a token's weights."""
    return texts * (tokens + tokens * tokens / _ATTENTION_PARITY_TOKENS)
