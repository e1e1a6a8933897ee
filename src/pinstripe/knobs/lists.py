"""Variables that hold several settings at once."""

from typing import Final

__all__ = ["LISTS", "appended"]

LISTS: Final = {"GLIBC_TUNABLES": ":", "MALLOC_CONF": ","}
"""What stands between the settings of each (ld.so(8), jemalloc(3)); of two for the same thing the later one counts."""


def appended(variable: str, before: str | None, text: str) -> str:
    """Return what a variable of `LISTS` holds once settings are added to it."""
    return f"{before}{LISTS[variable]}{text}" if before else text
