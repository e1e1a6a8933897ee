"""What a library makes of a batch, padded or packed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from packing_forms.rows import Batch

__all__ = ["Form", "Forward"]

Forward: TypeAlias = Callable[[Batch], NDArray[np.float32]]
"""Returns hidden states [rows, width, hidden size]."""


@dataclass(frozen=True, slots=True)
class Form:
    """One encoder in one library.

    Attributes:
        padded: Runs batches of one text a row.
        packed: Runs batches of several texts a row, attention confined to each.
        row_tokens: Most tokens of a packed row: where attention is computed over whole rows, long ones waste it; None
            where each text has its own.
    """

    padded: Forward
    packed: Forward
    row_tokens: int | None
