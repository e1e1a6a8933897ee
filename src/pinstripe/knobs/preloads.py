"""Libraries that are loaded before all others: the variable LD_PRELOAD (ld.so(8))."""

import os
from collections.abc import Collection, Mapping
from typing import Final

from pinstripe.errors import KnobError

__all__ = ["inherited_preloads", "preload_variable"]

_PRELOAD: Final = "LD_PRELOAD"
_SEPARATORS: Final = frozenset(" \t\n:")
"""What ld.so splits the variable on."""


def inherited_preloads(environment: Mapping[str, str | None] = os.environ) -> tuple[str, ...]:
    """Return what a worker with this environment would preload, as it stands there: paths, or names to be searched."""
    return tuple((environment.get(_PRELOAD) or "").replace(":", " ").split())


def preload_variable(
    paths: Collection[str], unload: Collection[str] = (), inherited: Mapping[str, str | None] = os.environ
) -> dict[str, str | None]:
    """Return the variable that has a worker load libraries before all others; nothing where it stays as it is.

    Args:
        paths: Absolute paths.
        unload: Entries of the inherited variable that the worker must not get.
        inherited: The worker's environment otherwise; what else it preloads stays, after `paths`.

    Raises:
        KnobError: The loader cannot take a path.
    """
    for path in paths:
        if _SEPARATORS.intersection(path):
            raise KnobError(f"the loader cannot preload {path!r}: its path has a space or colon; link it elsewhere")
    before = inherited_preloads(inherited)
    after = (*paths, *(path for path in before if path not in {*paths, *unload}))
    return {} if after == before else {_PRELOAD: ":".join(after) or None}
