"""`pinstripe report`: the table of records measured before."""

from pathlib import Path
from typing import Annotated

import typer

from pinstripe.cli.options import Json

__all__ = ["report"]


def report(
    records: Annotated[list[Path], typer.Argument(help="Files that `pinstripe bench` wrote.")],
    *,
    as_json: Json = False,
) -> None:
    """Print the table of trials that were measured before, run by run.

    Example: pinstripe report records/20261130-101500.jsonl
    """
    from pinstripe.bench import read_records  # noqa: PLC0415
    from pinstripe.cli.trials import print_runs  # noqa: PLC0415

    print_runs([record for path in records for record in read_records(path)], as_json=as_json)
