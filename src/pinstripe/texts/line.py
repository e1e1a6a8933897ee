"""One line of a file of texts."""

from dataclasses import dataclass

from pinstripe.models import Text

__all__ = ["BadLine", "TextLine"]


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line that holds a text.

    Attributes:
        number: From 1.
        end: Where the next line begins, in bytes from the file's begin.
        text: The text, or the two texts of a pair.
        id: What the line calls itself; None if it does not.
    """

    number: int
    end: int
    text: Text
    id: str | int | None = None


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that does not hold a text.

    Attributes:
        number: From 1.
        end: Where the next line begins, in bytes from the file's begin.
        reason: What is wrong with it, on one line.
    """

    number: int
    end: int
    reason: str
