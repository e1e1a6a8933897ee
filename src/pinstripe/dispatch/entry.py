"""What waits in a queue."""

from dataclasses import dataclass

from pinstripe.dispatch.request import Lane

__all__ = ["Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A text that waits, or a batch that somebody has made and that runs as it is.

    Attributes:
        number: Its number; those that came later have higher ones.
        tokens: Tokens of the text; padded length of the batch.
        arrival_ns: When it came.
        due_ns: When it has waited for as long as it should.
        deadline_ns: When nobody wants it any more; None for never.
        lane: Its request's.
        texts: Texts of a batch that runs as it is; 0 for a text that may share a batch with others.
    """

    number: int
    tokens: int
    arrival_ns: int
    due_ns: int
    deadline_ns: int | None = None
    lane: Lane = "single"
    texts: int = 0
