"""A diagnosis for people."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from pinstripe.cli.console import can_show
from pinstripe.cli.core_map import SQUARES, core_map
from pinstripe.diagnosis import Finding, Observations, Severity
from pinstripe.machine import Machine, format_cpu_list
from pinstripe.placement.cores import cut_to

__all__ = ["print_findings", "print_machine"]

_GIB: Final = 1 << 30
_STYLES: Final[dict[Severity, str]] = {"problem": "bold red", "warning": "bold yellow", "note": "cyan", "good": "green"}
_EXPLAINED: Final = {"problem", "warning"}
_COMMAND: Final = r"`[^`]+`|\b[A-Z]+(_[A-Z]+)+=\S*[^\s,;]"


def print_machine(seen: Observations, console: Console) -> None:
    """Print what the machine is, and a map of its cores."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in _headline(seen):
        table.add_row(name, Text(value))
    squares = can_show(SQUARES, console.encoding)
    picture, legend = core_map(seen.machine, seen.offline, width=console.width, squares=squares)
    console.print(table, "", picture, legend, "", sep="\n")


def print_findings(findings: Sequence[Finding], console: Console, *, everything: bool) -> None:
    """Print findings in their order: problems and warnings with what they cost and how to mend them.

    Args:
        findings: The most important first.
        console: Where to.
        everything: Whether to explain notes too, and to list what is good.
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for finding in findings:
        if everything or finding.severity != "good":
            explained = finding.severity in _EXPLAINED or (everything and finding.severity != "good")
            content = _explanation(finding) if explained else _line(finding, console.width)
            table.add_row(Text(finding.severity, _STYLES[finding.severity]), content)
            if explained:
                table.add_row()
    console.print(table)
    good = sum(finding.severity == "good" for finding in findings)
    if not everything:
        things = "1 thing is as it should" if good == 1 else f"{good} things are as they should"
        console.print(f"{things} be; -v lists them, and explains the notes", style="dim")


def _headline(seen: Observations) -> list[tuple[str, str]]:
    machine = seen.machine
    lines = [
        ("CPU", machine.model_name or "unknown"),
        ("cores", _cores(machine)),
        ("memory", _memory(seen)),
        ("quota", "none" if machine.cpu_quota is None else f"{machine.cpu_quota:g} CPUs"),
    ]
    rates = [f"{gflops:,.0f} GFLOP/s {name}" for name, gflops in (seen.peaks or {}).items() if gflops is not None]
    noise = [] if seen.noise_percent is None else [f"noise {seen.noise_percent:.1f} %"]
    return [*lines, ("measured", ", ".join(rates + noise))] if rates or noise else lines


def _cores(machine: Machine) -> str:
    cores = cut_to(machine.cores, machine.allowed)
    efficient = sum(core.kind == "efficiency" for core in cores)
    kinds = f" ({len(cores) - efficient} performance, {efficient} efficiency)" if efficient else ""
    threads = "" if len(machine.allowed) == len(cores) else f", {len(machine.allowed)} CPUs"
    if len(machine.allowed) == len(machine.online):
        return f"{len(cores)}{kinds}{threads}, all ours"
    ours = f"{len(cores)}{kinds}{threads} ({format_cpu_list(machine.allowed)})"
    return f"{ours} ours, of {len(machine.cores)} cores with {len(machine.online)} CPUs"


def _memory(seen: Observations) -> str:
    total = seen.memory.total_bytes or sum(node.memory_bytes for node in seen.machine.nodes)
    if not total:
        return "unknown"
    parts = [f"{total / _GIB:.1f} GiB"]
    if seen.memory.available_bytes is not None:
        parts.append(f"{seen.memory.available_bytes / _GIB:.1f} GiB available")
    if seen.memory.limit_bytes is not None:
        parts.append(f"limit {seen.memory.limit_bytes / _GIB:.1f} GiB")
    return ", ".join(parts)


def _line(finding: Finding, width: int) -> Text:
    """Put a finding in one line, without what was seen where that would make it two."""
    seen = f"  {finding.seen}"
    fits = len(finding.severity) + 2 + len(finding.title) + len(seen) <= width
    return Text.assemble(finding.title, (seen if fits else "", "dim"))


def _explanation(finding: Finding) -> Group:
    details = Table.grid(padding=(0, 1, 0, 0))
    details.add_column(style="dim", no_wrap=True)
    details.add_column()
    for name, value in (("seen", finding.seen), ("why", finding.cost), ("fix", finding.remedy)):
        if value:
            text = Text(value)
            text.highlight_regex(_COMMAND, "cyan")
            details.add_row(name, text)
    return Group(Text.assemble((finding.title, "bold"), (f"  {finding.certainty}", "dim italic")), details)
