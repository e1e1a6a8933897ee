"""The libraries behind the engines, imported when first needed."""

import importlib
import sys
from typing import Any

from pinstripe.errors import EngineError

__all__ = ["import_library", "one_line"]


def import_library(module: str, *, extra: str) -> Any:
    """Import a library by the name of its module.

    Args:
        module: Such as `onnxruntime`; the distribution has the same name.
        extra: The extra of pinstripe that installs it.

    Raises:
        EngineError: It is not installed, or installed but broken.
    """
    install = f"run `{sys.executable} -m pip install 'pinstripe[{extra}]'`"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise EngineError(f"{module} cannot be imported, it lacks {error.name}; {install}") from error
        elsewhere = "or name a Python that has it with --python, or choose another engine"
        raise EngineError(f"{module} is not installed; {install}, {elsewhere}") from error
    except (ImportError, OSError) as error:
        raise EngineError(f"{module} is installed but cannot be imported: {one_line(error)}; {install}") from error


def one_line(error: BaseException) -> str:
    """Return a foreign error's message without its line breaks, at most 400 characters of it."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 400 else f"{text[:399]}…"  # noqa: PLR2004 - the limit of the docstring
