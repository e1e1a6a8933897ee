"""The `pinstripe` command."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from pinstripe import __version__
from pinstripe.cli.bench import bench
from pinstripe.cli.doctor import doctor
from pinstripe.cli.place import place
from pinstripe.cli.report import report
from pinstripe.errors import PinstripeError, UsageError

__all__ = ["main"]

_INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Find how a BERT-like model runs best on the CPUs you have, and run it that way.\n\n"
    "Begin with: [bold]pinstripe bench random:minilm-l6 --baseline torch-eager --instances 1,per-core[/bold]",
)
app.command()(doctor)
app.command()(place)
app.command()(bench)
app.command()(report)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - the form of a typer callback
    if asked:
        typer.echo(f"pinstripe {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def main() -> NoReturn:
    """Run the command line; exit with 0, 1 (it failed), 2 (it cannot be had as asked) or 130 (Ctrl-C)."""
    try:
        app()
    except PinstripeError as error:
        message = " ".join(str(error).split())
        typer.echo(f"pinstripe: error: {message}", err=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone, as in `pinstripe … | head`; nothing more can be written there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    sys.exit(0)
