"""What is asked of a dispatcher, and what it answers."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import UsageError
from pinstripe.models import EncodedText
from pinstripe.pool import BatchTiming

__all__ = ["Lane", "Part", "Reply", "Request"]

Lane = Literal["single", "bulk"]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Texts that somebody waits for together.

    Attributes:
        rows: Token ids of each text, at least one.
        arrival_ns: When it came, on the dispatcher's clock; its latency counts from here.
        deadline_ns: When nobody wants the answer any more; None for never.
        lane: `single` for somebody who waits, `bulk` for work that may wait behind it.
    """

    rows: tuple[EncodedText, ...]
    arrival_ns: int
    deadline_ns: int | None = None
    lane: Lane = "single"

    def __post_init__(self) -> None:
        """Refuse what could never be answered.

        Raises:
            UsageError: There is no text, or no such lane.
        """
        if not self.rows:
            raise UsageError("a request of no texts has no answer; give it at least one")
        if self.lane not in get_args(Lane):
            raise UsageError(f"there is no lane {self.lane!r}; use one of {', '.join(get_args(Lane))}")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Results of some texts of a request, that were in one batch.

    Attributes:
        texts: Which of the request's texts, ascending.
        outputs: Arrays by name, as in `BatchResult`; the first axis is that of `texts`.
        instance: Index of the instance that ran the batch.
        timing: When the batch was where.
        batch_texts: Texts of the whole batch.
        batch_tokens: Padded length of the batch.
    """

    texts: NDArray[np.intp]
    outputs: dict[str, NDArray[Any]]
    instance: int
    timing: BatchTiming
    batch_texts: int
    batch_tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """Results of a request.

    Attributes:
        parts: Every text is in exactly one of them; in the order in which they ended.
        done_ns: When the last of them was there.
    """

    parts: tuple[Part, ...]
    done_ns: int
