"""What makes the same batch take another time."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from pinstripe.errors import ConfigurationError

__all__ = ["Noise"]

_MOST_SIGMA: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Random times around the expected one, and rare stalls.

    Attributes:
        sigma: Standard deviation of the logarithm of the factor on each batch's time, which has mean 1; 0 to 2.
        stalls_per_s: How often work is held up, such as by another process: a batch of t seconds is with probability
            1 - exp(-stalls_per_s t), then once. At least 0.
        stall_s: For how long it is then, at least 0.
    """

    sigma: float = 0.0
    stalls_per_s: float = 0.0
    stall_s: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigurationError: A number is out of range.
        """
        if not (0 <= self.sigma <= _MOST_SIGMA and 0 <= self.stalls_per_s < math.inf and 0 <= self.stall_s < math.inf):
            raise ConfigurationError(
                f"{self} is out of range; use a sigma of 0 to {_MOST_SIGMA}, stalls and their length of 0 or more"
            )

    def applied(self, seconds: float, random: np.random.Generator) -> float:
        """Return the time that a batch takes; draws as often from `random` whatever comes of it."""
        undisturbed = seconds * math.exp(self.sigma * random.standard_normal() - self.sigma**2 / 2)
        stalls = random.random() < -math.expm1(-self.stalls_per_s * undisturbed)
        return undisturbed + (self.stall_s if stalls else 0.0)
