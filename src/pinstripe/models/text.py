"""A text, or a pair of texts, and whether it is one."""

from collections.abc import Iterable
from typing import TypeAlias

from pinstripe.errors import BadTextError, UsageError

__all__ = ["Text", "check_several", "check_text"]

Text: TypeAlias = str | tuple[str, str]
"""A text, or a pair such as a query and a passage."""


def check_several(texts: object) -> None:
    """Raise if what was given are not several texts: a single string would be taken for its characters.

    Raises:
        UsageError: They are not.
    """
    if isinstance(texts, str):
        raise UsageError("a single string was given where several texts are taken; put it into a list")
    if not isinstance(texts, Iterable):
        raise UsageError(f"{type(texts).__name__} was given where several texts are taken; give a list of them")


def check_text(text: object, index: int) -> None:
    """Raise if something is not a text that can be tokenized.

    Args:
        text: What was given as a text.
        index: Its place among others, for the message.

    Raises:
        BadTextError: It is no string and no pair of strings, or has half of a surrogate pair.
    """
    match text:
        case str():
            parts: tuple[str, ...] = (text,)
        case (str(), str()) if isinstance(text, tuple):
            parts = text
        case _:
            kind = type(text).__name__
            raise BadTextError(index, f"is {kind} and not a string or a pair of strings; convert it")
    for part in parts:
        if not part.isascii():
            _check_unicode(part, index)


def _check_unicode(part: str, index: int) -> None:
    try:
        part.encode()
    except UnicodeEncodeError as error:
        code = ord(part[error.start])
        raise BadTextError(
            index, f"is no valid Unicode: lone surrogate U+{code:04X}; decode it with errors='replace'"
        ) from error
