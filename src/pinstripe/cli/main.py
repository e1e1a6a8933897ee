"""The `pinstripe` command."""

import errno
import os
import sys
from typing import Annotated, NoReturn, cast

import typer

from pinstripe import __version__
from pinstripe.cli.accuracy import accuracy
from pinstripe.cli.bench import bench
from pinstripe.cli.doctor import doctor
from pinstripe.cli.embed import embed
from pinstripe.cli.engines import engines
from pinstripe.cli.knobs import knobs
from pinstripe.cli.launch import launch
from pinstripe.cli.load import load
from pinstripe.cli.place import place
from pinstripe.cli.report import report
from pinstripe.errors import PinstripeError, UsageError

__all__ = ["main"]

_CommandLineError = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])
"""What typer raises for words it cannot read; typer does not export it, and has moved it before."""
_INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Find how a BERT-like model runs best on the CPUs you have, and run it that way.\n\n"
    "Begin with: [bold]pinstripe bench random:minilm-l6 --baseline torch-eager --instances 1,per-core "
    "--scenario offline[/bold]",
)
app.command()(doctor)
app.command()(engines)
app.command()(knobs)
app.command()(place)
app.command(context_settings={"allow_interspersed_args": False})(launch)
app.command()(bench)
app.command()(embed)
app.command()(load)
app.command()(accuracy)
app.command()(report)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - the form of a typer callback
    if asked:
        typer.echo(f"pinstripe {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _say(message: str) -> None:
    typer.echo(f"pinstripe: error: {' '.join(message.split())}", err=True)


def _open_standard_streams() -> None:
    """Put nothing in the place of those that the shell has closed (`>&-`): the next file would take their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest free number


def main() -> NoReturn:
    """Run the command line; exit with 0, 1 (it failed), 2 (it cannot be had as asked) or 130 (Ctrl-C)."""
    _open_standard_streams()
    try:
        # Typer returns the code of an early end (help, version, Ctrl-C), and None when a command has run.
        code = app(standalone_mode=False, prog_name="pinstripe")
        if sys.stdout is not None:  # closed by whoever started us
            sys.stdout.flush()
        sys.exit(code)
    except PinstripeError as error:
        _say(str(error))
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except _CommandLineError as error:
        context = getattr(error, "ctx", None)
        _say(f"{error.format_message().rstrip('.')}; see `{context.command_path if context else 'pinstripe'} --help`")
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_INTERRUPTED)
    except OSError as error:
        if error.errno not in {errno.EPIPE, errno.ENOSPC}:
            raise
        # The reader of our output has gone, as in `pinstripe … | head`, or the disk it goes to is full; what is still
        # buffered must not fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.ENOSPC:
            _say(f"cannot write the output: {error.strerror}")
        sys.exit(1)
