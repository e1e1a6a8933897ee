"""Which engines are installed, here or in another Python environment.

Their libraries are looked for and not imported, which would take long: that one is broken shows when it is used.
`PYTHON -P -m pinstripe.engines.inventory` prints what is installed in another environment, as JSON.
"""

import importlib.util
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec

from pinstripe import __version__
from pinstripe.engines.importing import one_line
from pinstripe.engines.last_words import last_words
from pinstripe.engines.other_python import explain_end
from pinstripe.engines.precision import has_bfloat16
from pinstripe.engines.protocol import Engine, Precision
from pinstripe.engines.python_process import run_module
from pinstripe.engines.registry import FOR_TESTS, engine, engine_names
from pinstripe.errors import EngineError, ExecutionError
from pinstripe.machine import read_isa

__all__ = ["InstalledEngine", "list_engines"]

_LIMIT_S: Final = 60.0


class InstalledEngine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An engine, and whether it can be used.

    Attributes:
        name: Its name.
        available: Whether all that it needs is installed; nothing was imported to see whether that works.
        version: Version of the library that computes; None where that is not installed.
        precisions: What the engine can compute in on this CPU, once it is installed.
        why_not: What is missing, and the command that installs it; None where it is available.
        location: Directory of the library that computes; None where that is not installed.
    """

    name: str
    available: bool
    version: str | None
    precisions: tuple[Precision, ...]
    why_not: str | None
    location: str | None


def list_engines(pythons: Mapping[str | None, str] | None = None) -> tuple[InstalledEngine, ...]:
    """Return all engines, by name.

    Args:
        pythons: Interpreter of the environment to look for an engine in, by its name; None for all others. Without
            one, an engine is looked for in this environment.

    Raises:
        EngineError: An interpreter cannot be run, or pinstripe cannot run in its environment.
        ExecutionError: An environment gives no answer within a minute, or more than 1 MiB.
    """
    chosen = pythons or {}
    wanted = {name: chosen.get(name, chosen.get(None)) for name in engine_names() if name != FOR_TESTS}
    there = {python: _ask(python) for python in sorted({python for python in wanted.values() if python is not None})}
    return tuple(
        _look(name) if python is None else _found(there[python], name, python) for name, python in wanted.items()
    )


def _look(name: str) -> InstalledEngine:
    kind = engine(name)
    missing = [distribution for distribution in kind.distributions if _directory(distribution) is None]
    computing = kind.distributions[0]
    directory = _directory(computing)
    return InstalledEngine(
        name=name,
        available=not missing,
        version=None if directory is None else _version(computing),
        precisions=_precisions(kind),
        why_not=_why_not(missing, kind.extra) if missing else None,
        location=directory,
    )


def _why_not(missing: list[str], extra: str) -> str:
    verb = "is" if len(missing) == 1 else "are"
    install = f"{sys.executable} -m pip install 'pinstripe[{extra}]'"
    return f"{' and '.join(missing)} {verb} not installed; run `{install}`"


def _module(distribution: str) -> str:
    return distribution.replace("-", "_")


def _directory(distribution: str) -> str | None:
    """Return where a distribution's module lies; None if it is not installed."""
    found = importlib.util.find_spec(_module(distribution))
    if found is None or found.origin is None:  # a directory that is only called so has no origin
        return None
    return str(Path(found.origin).parent)


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:  # another distribution has the module, as tensorflow-cpu has tensorflow's
        names = metadata.packages_distributions().get(_module(distribution), [])
        return metadata.version(names[0]) if names else None


def _precisions(kind: Engine) -> tuple[Precision, ...]:
    lacking = {precision for precision, needed in kind.also_needs.items() if _directory(needed) is None}
    if not has_bfloat16(read_isa()):
        lacking.add("bfloat16")
    return tuple(precision for precision in kind.precisions if precision not in lacking)


def _ask(python: str) -> dict[str, InstalledEngine]:
    """Return the engines of another environment by name."""
    try:
        finished = run_module(python, "pinstripe.engines.inventory", limit_s=_LIMIT_S)
    except ExecutionError as error:
        raise ExecutionError(f"{python} did not say what it has: {error}; try it by hand") from error
    if finished.code:
        said = last_words(finished.errors, 1) or "it left no message"
        why = explain_end(python, finished.errors, finished.code) or f"{python} failed to list its engines: {said}"
        raise EngineError(why)
    try:
        found = msgspec.json.decode(finished.output, type=list[InstalledEngine])
    except msgspec.DecodeError as error:
        raise EngineError(
            f"what {python} says of its engines is not understood ({one_line(error)}); is it a Python with pinstripe "
            f"{__version__}?"
        ) from error
    return {one.name: one for one in found}


def _found(there: Mapping[str, InstalledEngine], name: str, python: str) -> InstalledEngine:
    if name not in there:
        raise EngineError(f"{python} has a pinstripe without engine {name}; install {__version__} in both environments")
    return there[name]


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(list_engines()))
