"""What a look at a machine found: one good or bad thing, in words for people."""

from typing import Final, Literal, get_args

import msgspec

__all__ = ["SEVERITIES", "Certainty", "Finding", "Severity"]

Severity = Literal["problem", "warning", "note", "good"]
Certainty = Literal["certain", "likely", "possible"]

SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
"""All severities, the worst first."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that makes models run slower on this machine, or that is as it should be.

    Attributes:
        subject: What it is about, a fixed word for programs, such as `cpu-quota`.
        severity: `problem`: most services here are slow because of it. `warning`: many are, unless they mind it.
            `note`: it matters to some, or a little. `good`: nothing to do.
        title: The finding in one short line.
        seen: The values it rests on.
        cost: What it costs, and why; empty for what is good.
        remedy: A command or setting that mends it; None where nothing has to be, or nothing can be.
        certainty: `certain`: the kernel says so, and the effect follows. `likely`: it holds for most programs.
            `possible`: measure before you act.
    """

    subject: str
    severity: Severity
    title: str
    seen: str
    cost: str = ""
    remedy: str | None = None
    certainty: Certainty
