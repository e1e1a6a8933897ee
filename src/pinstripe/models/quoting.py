"""Values from a model's files in messages: one line, and never long."""

import reprlib

__all__ = ["quoted", "shortened"]

_LIMIT_CHARACTERS = 80
_REPR = reprlib.Repr()  # neither long nor deep values are written out whole
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = _LIMIT_CHARACTERS


def quoted(value: object) -> str:
    """Return a value's `repr` without what is beyond 80 characters."""
    return shortened(_REPR.repr(value))


def shortened(text: str) -> str:
    """Return the start of a text on one line, at most 80 characters."""
    line = " ".join(text[: 2 * _LIMIT_CHARACTERS].split())
    return line if len(line) <= _LIMIT_CHARACTERS else f"{line[: _LIMIT_CHARACTERS - 1]}…"
