"""Results on their way into a file."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pinstripe.models import Answer

__all__ = ["Rows"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Results of texts that follow each other in their file; all of one length.

    Attributes:
        lines: Number of the line of each, from 1.
        ids: What each line calls itself.
        vectors: float32 [rows, width] for results of one width, such as embeddings; None for others.
        answers: Results of any other kind; empty if there are vectors.
    """

    lines: Sequence[int]
    ids: Sequence[str | int | None]
    vectors: NDArray[np.float32] | None
    answers: Sequence[Answer]
