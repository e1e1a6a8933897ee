"""How texts are put into batches."""

from typing import Annotated, Literal

import msgspec

__all__ = ["BatchRule", "Order"]

Order = Literal["sorted", "arrival"]


class BatchRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How texts are put into batches.

    Attributes:
        order: `sorted` puts texts of near-equal length together, the longest first, so that little is padding and the
            last batches to end are short ones. `arrival` takes them as they come.
        texts: Most texts in a batch, 1 to 4096.
        tokens: Most tokens in a batch, padding included, 1 to 2^24; None for no such bound. A text that is longer than
            that is a batch of its own.
    """

    order: Order = "sorted"
    texts: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 4096
    tokens: Annotated[int, msgspec.Meta(ge=1, le=1 << 24)] | None = None
