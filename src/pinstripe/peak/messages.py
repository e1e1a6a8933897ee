"""What a probe's processes and their parent say to each other: JSON, a message a line."""

import msgspec

__all__ = ["FromProbe", "Prepare", "Prepared", "ProbeFailed", "Ran", "Ready", "Run", "ToProbe"]


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Make matrices for [m, k] x [k, n] and multiply them until that is fast."""

    m: int
    n: int
    k: int


class Run(msgspec.Struct, frozen=True, tag="run"):
    """Multiply them again and again for a time."""

    duration_ns: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The library is loaded and computes with as many threads as were asked for."""


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """One product takes this long."""

    call_ns: int


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """So many products took so long."""

    calls: int
    elapsed_ns: int


class ProbeFailed(msgspec.Struct, frozen=True, tag="failed"):
    """It cannot be done, and the process ends."""

    reason: str


ToProbe = Prepare | Run
FromProbe = Ready | Prepared | Ran | ProbeFailed
