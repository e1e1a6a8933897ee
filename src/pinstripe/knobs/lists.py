"""Variables that hold several settings at once."""

from typing import Final

__all__ = ["LISTS", "appended", "without"]

LISTS: Final = {"GLIBC_TUNABLES": ":", "MALLOC_CONF": ","}
"""What stands between the settings of each (ld.so(8), jemalloc(3)); of two for the same thing the later one counts."""


def appended(variable: str, before: str | None, text: str) -> str:
    """Return what a variable of `LISTS` holds once settings are added to it."""
    return f"{before}{LISTS[variable]}{text}" if before else text


def without(variable: str, text: str, prefix: str) -> str | None:
    """Return what a variable of `LISTS` holds without the settings that begin so; None for nothing."""
    separator = LISTS[variable]
    return separator.join(one for one in text.split(separator) if not one.startswith(prefix)) or None
