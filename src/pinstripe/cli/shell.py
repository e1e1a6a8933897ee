"""Words for a shell."""

import os
import shlex
import sys

from pinstripe.cli.console import can_show

__all__ = ["readable", "shell_word"]


def shell_word(word: str) -> str:
    r"""Quote a word so that a shell reads it as it is.

    One that standard output cannot show, such as a path with a byte that is not UTF-8, is written `$'\xff'`, which
    bash, zsh and others since POSIX.1-2024 understand.
    """
    if can_show(word, getattr(sys.stdout, "encoding", None)):
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, os.fsencode(word)))}'"


def readable(word: str) -> str:
    r"""Return an argument as text that any UTF-8 file can hold: bytes of it that are not UTF-8 become `\xff`."""
    return os.fsencode(word).decode(errors="backslashreplace")


def _escaped(byte: int) -> str:
    sign = chr(byte)
    return sign if sign.isascii() and sign.isprintable() and sign not in "\\'" else f"\\x{byte:02x}"
