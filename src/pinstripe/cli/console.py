"""Standard output and error, whatever is behind them."""

import io
import sys
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["can_show", "print_json", "standard_error", "standard_output"]

_LEAST_WIDTH: Final = 20
_USUAL_WIDTH: Final = 80


def standard_output(width: int | None = None) -> "Console":
    """Return a console on standard output.

    It prints text as it is: brackets in a model's name or a path are no markup. What its encoding lacks comes as
    backslash escapes; ask `can_show` first where there is a better substitute.

    Args:
        width: Its columns; None for those of the terminal, or 80 where these are too few for anything.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error is by itself
    return _console(width, is_error=False)


def standard_error() -> "Console":
    """Return a console on standard error; as `standard_output`."""
    return _console(None, is_error=True)


def can_show(text: str, encoding: str | None) -> bool:
    """Return whether a stream with this encoding, None for UTF-8, has all signs of a text."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def print_json(value: Any) -> None:
    """Print a value as indented JSON on standard output: in UTF-8, whatever the terminal's encoding (RFC 8259)."""
    import msgspec  # noqa: PLC0415 - `pinstripe --help` has no use for it

    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def _console(width: int | None, *, is_error: bool) -> "Console":
    from rich.console import Console  # noqa: PLC0415 - likewise

    console = Console(stderr=is_error, width=width, markup=False, emoji=False, highlight=False)
    if console.width < _LEAST_WIDTH:
        console.width = _USUAL_WIDTH
    return console
