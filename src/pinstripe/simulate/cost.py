"""What a simulated machine takes for a batch."""

from typing import NamedTuple, Protocol

__all__ = ["Cost", "CostPoint"]


class Cost(Protocol):
    """Time that an instance takes for a batch, without noise."""

    def __call__(self, cores: int, texts: int, tokens: int) -> float:
        """Return the time.

        Args:
            cores: Of the instance, at least 1.
            texts: In the batch, at least 1.
            tokens: Length to which each is padded, at least 1.

        Returns:
            Seconds, above 0.
        """
        ...


class CostPoint(NamedTuple):
    """A measured time.

    Attributes:
        cores: Of the instance.
        texts: In the batch.
        tokens: Length to which each was padded.
        seconds: What the instance took.
    """

    cores: int
    texts: int
    tokens: int
    seconds: float
