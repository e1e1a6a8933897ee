"""What `pinstripe launch` says: the plan, and what became of it."""

import os
from typing import TYPE_CHECKING

import typer

from pinstripe.cli.shell import readable, shell_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pinstripe.placement import Placement
    from pinstripe.runtime import GroupResult, MemberResult, MemoryPolicyEffect, StartRequest

__all__ = ["plan", "plan_lines", "print_summary", "replaced_variables"]


def replaced_variables(requests: "Sequence[StartRequest]") -> list[str]:
    """Return what to say of variables of this shell that the instances don't get as they are."""
    return [
        f"{name}={readable(os.environ[name])} is set here and "
        f"{'removed' if value is None else f'replaced by {value}'} for the instances; to have it there, "
        f"write -- env {shell_word(f'{name}={os.environ[name]}')} CMD"
        for name, value in requests[0].environment.items()
        if os.environ.get(name, value) != value and not name.startswith("PINSTRIPE_")
    ]


def plan(placement: "Placement", requests: "Sequence[StartRequest]") -> dict[str, object]:
    """Return what would be started, for JSON."""
    from pinstripe.runtime import expect  # noqa: PLC0415

    return {
        "instances": [
            {
                "index": index,
                "argv": [readable(word) for word in request.argv],
                "cpus": request.cpus,
                "nodes": request.nodes,
                "memory": expect(request.memory_policy, request.nodes),
                "environment": request.environment,
            }
            for index, request in enumerate(requests)
        ],
        "idle": placement.idle,
        "reserved": placement.reserved,
        "warnings": placement.warnings,
    }


def plan_lines(placement: "Placement", requests: "Sequence[StartRequest]") -> list[str]:
    """Return what would be started, for people: for each instance where, and a line that a shell understands."""
    from pinstripe.runtime import expect  # noqa: PLC0415

    lines = []
    for index, request in enumerate(requests):
        lines.append(
            f"instance {index}: {_cpus(request.cpus)}, {_memory(expect(request.memory_policy, request.nodes))}"
        )
        removed = [word for name, value in request.environment.items() if value is None for word in ("-u", name)]
        given = [f"{name}={value}" for name, value in request.environment.items() if value is not None]
        lines.append("    " + " ".join(map(shell_word, ["env", *removed, *given, *request.argv])))
    return [*lines, *(f"note: {note}" for note in (*placement.warnings, *replaced_variables(requests)))]


def print_summary(result: "GroupResult", *, as_json: bool, quiet: bool) -> None:
    """Say on standard error what became of each instance."""
    import msgspec  # noqa: PLC0415

    if as_json:
        typer.echo(msgspec.json.encode(result).decode(), err=True)
    elif not quiet:
        for member in result.members:
            line = f"pinstripe: {_summary_line(member)}"
            typer.echo(typer.style(line, fg="red") if member.outcome in {"failed", "stuck"} else line, err=True)


def _summary_line(member: "MemberResult") -> str:
    if member.outcome == "not-started":
        return f"instance {member.index}: not started"
    ended = {"stopped": "stopped, ", "stuck": "does not end, even by SIGKILL: see /proc/PID/stack"}.get(
        member.outcome, ""
    )
    if member.status is not None:
        ended += _exit(member.status)
    where = [_cpus(member.cpus), *([_memory(member.memory)] if member.memory and _is_told(member.memory) else [])]
    return f"instance {member.index}: {ended} after {member.duration_s:.1f} s ({', '.join(where)})"


def _is_told(effect: "MemoryPolicyEffect") -> bool:
    """Return whether a policy is in force, or was asked for by name."""
    return effect.requested != "auto" or effect.effective != "none"


def _exit(status: int) -> str:
    import signal  # noqa: PLC0415

    if status >= 0:
        return f"exit code {status}"
    known = -status in set(signal.Signals)
    return f"killed by {signal.Signals(-status).name if known else f'signal {-status}'}"


def _cpus(cpus: tuple[int, ...] | None) -> str:
    from pinstripe.machine import format_cpu_list  # noqa: PLC0415

    listed = format_cpu_list(cpus or ())
    return f"{'CPU' if len(cpus or ()) == 1 else 'CPUs'} {listed}"


def _memory(effect: "MemoryPolicyEffect") -> str:
    from pinstripe.machine import format_cpu_list  # noqa: PLC0415

    nodes = f" {format_cpu_list(effect.nodes)}" if effect.nodes else ""
    return f"memory {effect.requested} -> {effect.effective}{nodes}: {effect.why}"
