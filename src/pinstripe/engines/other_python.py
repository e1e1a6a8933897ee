"""Another Python environment: what to say when pinstripe cannot run there."""

import os
import re
import shutil
from pathlib import Path
from typing import Final

from pinstripe import __version__
from pinstripe.errors import EngineError

__all__ = ["check_python", "explain_end"]

_MISSING: Final = re.compile(r"No module named '?([\w.]+)")
_NEEDED: Final = ("pinstripe", "msgspec", "numpy")
"""What pinstripe imports there before it can answer; that an engine's library is missing is said by the engine."""


def check_python(python: str) -> None:
    """Refuse what is no file that can be executed.

    Args:
        python: Path of an interpreter, or a name that is looked for in PATH.

    Raises:
        EngineError: It is none; the message says which path an environment's interpreter has.
    """
    if shutil.which(python) is not None:
        return
    path = Path(python)
    if path.is_dir():
        inside = path / "bin" / "python"
        hint = f"use {inside}" if os.access(inside, os.X_OK) else "there is no bin/python in it"
        raise EngineError(f"{python} is a directory and no Python interpreter; {hint}")
    if not path.exists():
        raise EngineError(f"there is no Python interpreter {python}; name one with its path, such as DIR/bin/python")
    raise EngineError(f"{python} may not be executed; name a Python interpreter, such as DIR/bin/python")


def explain_end(python: str, said: str) -> str | None:
    """Return why pinstripe ended there before it could answer, and what to do; None where its words don't tell.

    Args:
        python: Its interpreter.
        said: The end of what it wrote.
    """
    install = f"run `{python} -m pip install pinstripe=={__version__}`"
    missing = _MISSING.search(said)
    if missing is not None and missing[1].partition(".")[0] in _NEEDED:
        return f"{python} cannot run pinstripe: it has no {missing[1]}; {install}"
    if re.search(r"unknown option:? -P", said, re.IGNORECASE):
        return f"{python} is older than Python 3.11; name the interpreter of a newer one"
    if "of one pinstripe version" in said:
        return f"{python} has a pinstripe that does not understand this one's messages; {install}, the version here"
    return None
