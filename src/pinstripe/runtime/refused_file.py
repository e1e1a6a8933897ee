"""Why the kernel does not execute a file that is there."""

import errno
import os
import shutil
from pathlib import Path
from typing import Final

__all__ = ["explain_refused_file", "shown"]

_LONGEST_LINE_BYTES: Final = 256  # what the kernel reads of it (BINPRM_BUF_SIZE in linux/binfmts.h)


def explain_refused_file(command: str, path: str | None, number: int | None) -> str | None:
    """Return what to do about a file whose first line, or the want of one, is why it was not executed.

    Args:
        command: The command, looked for in `path` if it has no slash.
        path: The `PATH` that it was looked for in; None for the system's.
        number: The error's number (`execve(2)`); None if it was none of the kernel's.

    Returns:
        What is wrong and how to mend it; None where the file, or the reason, is another.
    """
    file = shutil.which(command, path=path)
    if file is None:
        return None
    if number == errno.ENOEXEC:
        return (
            "it is no program of this machine, nor does it begin with a #! line; give it one, such as #!/bin/sh, or "
            "put its interpreter before it"
        )
    if number != errno.ENOENT:
        return None
    line = _first_line(file)
    if line.startswith(b"#!"):
        return f"the file is there, but the interpreter in its first line, {shown(os.fsdecode(line))}, is not; mend it"
    return "the file is there, but the loader that it names is not: it was made for another system"


def shown(word: str) -> str:
    """Return a word in quotes, as Python writes it; bytes that are not UTF-8 as bytes."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return repr(os.fsencode(word))[1:]
    return repr(word)


def _first_line(file: str) -> bytes:
    try:
        with Path(file).open("rb") as content:
            return content.readline(_LONGEST_LINE_BYTES).removesuffix(b"\n")
    except OSError:  # a file may be executed that may not be read
        return b""
