"""Which engines are installed, here or in another Python environment.

Their libraries are looked for and not imported, which would take long: that one is broken shows when it is used.
`PYTHON -P -m pinstripe.engines.inventory` prints what is installed in another environment, as JSON.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec

from pinstripe import __version__
from pinstripe.engines.importing import one_line
from pinstripe.engines.other_python import check_python, explain_end
from pinstripe.engines.precision import has_bfloat16
from pinstripe.engines.protocol import Engine, Precision
from pinstripe.engines.registry import engine, engine_names
from pinstripe.errors import EngineError, ExecutionError
from pinstripe.machine import read_isa

__all__ = ["InstalledEngine", "list_engines"]

_FOR_TESTS: Final = "fake"
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
        ExecutionError: An environment gives no answer within a minute.
    """
    chosen = pythons or {}
    wanted = {name: chosen.get(name, chosen.get(None)) for name in engine_names() if name != _FOR_TESTS}
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
    able = has_bfloat16(read_isa())
    return tuple(precision for precision in kind.precisions if able or precision != "bfloat16")


def _ask(python: str) -> dict[str, InstalledEngine]:
    """Return the engines of another environment by name."""
    check_python(python)
    try:
        finished = subprocess.run(
            [python, "-P", "-W", "ignore", "-m", "pinstripe.engines.inventory"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except OSError as error:
        raise EngineError(f"{python} cannot be run: {error.strerror}; name a Python interpreter") from error
    except subprocess.TimeoutExpired:
        raise ExecutionError(f"{python} did not say what it has within {_LIMIT_S:.0f} s; try it by hand") from None
    said = finished.stderr.decode(errors="replace")
    if finished.returncode:
        last = (said.strip().splitlines() or ["it left no message"])[-1]
        why = explain_end(python, said) or f"{python} failed to list its engines: {last.strip()}"
        raise EngineError(why)
    try:
        found = msgspec.json.decode(finished.stdout, type=list[InstalledEngine])
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
