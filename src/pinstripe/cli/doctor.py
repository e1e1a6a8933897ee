"""`pinstripe doctor`: what this machine offers."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pinstripe.cli.options import Json, Root

if TYPE_CHECKING:
    from pinstripe.machine import Machine

__all__ = ["doctor"]

_GIB = 1 << 30


def doctor(*, root: Root = Path("/"), as_json: Json = False) -> None:
    """Say what this machine offers: cores, sockets, NUMA nodes, caches, and the limits on them.

    Example: pinstripe doctor --json | jq .machine.cpu_quota
    """
    # Here and in the other commands: what `pinstripe --help` has no use for is imported where it is used.
    import msgspec  # noqa: PLC0415

    from pinstripe.machine import read_machine  # noqa: PLC0415

    machine = read_machine(root)
    if as_json:
        description = msgspec.to_builtins(machine)
        for node in description["nodes"]:
            del node["neighbours"]  # ranks that placement works with; what doctor prints is fixed
        typer.echo(msgspec.json.format(msgspec.json.encode({"machine": description}), indent=2).decode())
    else:
        typer.echo("\n".join(_lines(machine)))


def _lines(machine: "Machine") -> list[str]:
    from pinstripe.machine import format_cpu_list  # noqa: PLC0415

    threads = max(len(core.cpus) for core in machine.cores)
    efficiency = sum(core.kind == "efficiency" for core in machine.cores)
    kinds = f" ({len(machine.cores) - efficiency} performance, {efficiency} efficiency)" if efficiency else ""
    usable = sum(not set(core.cpus).isdisjoint(machine.allowed) for core in machine.cores)
    ours = "" if usable == len(machine.cores) else f", {usable} of them allowed,"
    packages = len(machine.packages) or "?"
    lines = [
        f"CPU       {machine.model_name or 'unknown'}",
        f"cores     {len(machine.cores)}{kinds}{ours} in {packages} package(s), {threads} CPU(s) a core",
        f"CPUs      {format_cpu_list(machine.allowed)} allowed, {format_cpu_list(machine.online)} online",
        f"L3        {' | '.join(map(format_cpu_list, machine.l3)) or 'unknown'}",
    ]
    for node in machine.nodes:
        memory = f"{node.memory_bytes / _GIB:.1f} GiB" if node.memory_bytes else "memory unknown or none"
        use = "" if node.id in machine.allowed_nodes else ", not allowed"
        lines.append(f"node {node.id:<4} CPUs {format_cpu_list(node.cpus) or 'none'}, {memory}{use}")
    if machine.isolated:
        lines.append(f"isolated  {format_cpu_list(machine.isolated)}")
    quota = "none" if machine.cpu_quota is None else f"{machine.cpu_quota:g} CPUs"
    lines.append(f"quota     {quota}")
    lines.append(f"THP       {machine.thp or 'unknown'}, SMT {machine.smt or 'unknown'}")
    return lines
