"""Another Python environment: what to say when pinstripe cannot run there."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from pinstripe import __version__
from pinstripe.errors import EngineError

__all__ = ["check_python", "explain_end"]

_MISSING: Final = re.compile(r"No module named '?([\w.]+)")
_NEEDED: Final = ("pinstripe", "msgspec", "numpy")
"""What pinstripe imports there before it can answer; that an engine's library is missing is said by the engine."""

_OTHER_PROGRAM: Final = re.compile(r"(invalid|unrecognized|illegal|bad) option", re.IGNORECASE)
"""What other programs say of Python's `-P`."""


def check_python(python: str) -> None:
    """Refuse what is no file that can be executed, as `--python` or a plan may name it.

    Args:
        python: Path of an interpreter, or a name that is looked for in PATH.

    Raises:
        EngineError: It is none; the message says which path an environment's interpreter has.
    """
    if shutil.which(python) is not None:
        return
    path, example = Path(python), "such as DIR/bin/python"
    if not python:
        raise EngineError(f"--python is empty; name a Python interpreter, {example}")
    if path.is_dir():
        inside = path / "bin" / "python"
        hint = f"use {inside}" if os.access(inside, os.X_OK) else "there is no bin/python in it"
        raise EngineError(f"--python {python} is a directory and no Python interpreter; {hint}")
    if not path.exists():
        where = "" if "/" in python else " in PATH"
        raise EngineError(f"--python {python}: there is no such interpreter{where}; name one with its path, {example}")
    if "/" not in python:  # which is looked for in PATH alone, as shells do
        raise EngineError(f"--python {python}: there is none in PATH; write ./{python} for the one here")
    raise EngineError(f"--python {python} may not be executed; name a Python interpreter, {example}")


def explain_end(python: str, said: str, code: int | None) -> str | None:
    """Return why pinstripe ended there before it could answer, and what to do; None where its words don't tell.

    Args:
        python: Its interpreter.
        said: The end of what it wrote.
        code: Its exit status; None where that is unknown.
    """
    install = f"run `{python} -m pip install pinstripe=={__version__}`"
    missing = _MISSING.search(said)
    if missing is not None and missing[1].partition(".")[0] in _NEEDED:
        return f"{python} cannot run pinstripe: it has no {missing[1]}; {install}"
    if re.search(r"unknown option:? -P", said, re.IGNORECASE):
        return f"{python} is older than Python 3.11; name the interpreter of a newer one"
    if "of one pinstripe version" in said:
        return f"{python} has a pinstripe that does not understand this one's messages; {install}, the version here"
    # A Python that runs pinstripe ends with 0 only when it has answered, and says why it fails.
    silent = code is not None and code > 0 and not said.strip()
    if python != sys.executable and (code == 0 or silent or _OTHER_PROGRAM.search(said)):
        return f"{python} did not behave as a Python interpreter; name one with --python"
    return None
