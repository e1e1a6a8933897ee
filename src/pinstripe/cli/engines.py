"""`pinstripe engines`: what is installed, and what is not."""

from pathlib import Path
from typing import TYPE_CHECKING

from pinstripe.cli.console import can_show, print_json, standard_output
from pinstripe.cli.engine_options import PythonOption, read_pythons
from pinstripe.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from pinstripe.engines.inventory import InstalledEngine

__all__ = ["engines"]


def engines(*, python: PythonOption = None, as_json: Json = False) -> None:
    """Say which engines are installed, in which precisions they compute on this CPU, and what is missing.

    Libraries are looked for and not imported: that one is broken shows when it is used.

    Example: pinstripe engines --python tf-graph=/opt/tf/bin/python
    """
    from pinstripe.engines.inventory import list_engines  # noqa: PLC0415

    found = list_engines(read_pythons(python or []))
    if as_json:
        print_json(found)
    else:
        print_engines(found, standard_output())


def print_engines(found: "Sequence[InstalledEngine]", console: "Console") -> None:
    """Print a table of the engines, and below it how to get those that are not there."""
    from rich.table import Table  # noqa: PLC0415

    yes, no = ("✓", "✗") if can_show("✓✗", console.encoding) else ("yes", "no")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in ("engine", "", "version", "precisions"):
        table.add_column(name, no_wrap=True)
    for one in found:
        mark, style = (yes, "") if one.available else (no, "dim")
        table.add_row(one.name, mark, one.version or "", ", ".join(one.precisions), style=style)
    console.print(table)
    for directory, names in _directories(found).items():
        console.print(f"{', '.join(names)}: in {directory}", style="dim", soft_wrap=True)
    for reason, names in _reasons(found).items():
        console.print(f"{', '.join(names)}: {reason}", style="yellow", soft_wrap=True)


def _directories(found: "Sequence[InstalledEngine]") -> dict[str, list[str]]:
    """Return the engines that lie below each directory, which most share."""
    directories: dict[str, list[str]] = {}
    for one in found:
        if one.location is not None:
            directories.setdefault(str(Path(one.location).parent), []).append(one.name)
    return directories


def _reasons(found: "Sequence[InstalledEngine]") -> dict[str, list[str]]:
    """Return the engines for which each thing is missing."""
    reasons: dict[str, list[str]] = {}
    for one in found:
        if one.why_not is not None:
            reasons.setdefault(one.why_not, []).append(one.name)
    return reasons
