"""A measured peak, as plain data."""

from typing import Literal

import msgspec

from pinstripe.runtime import MemoryPolicy

__all__ = ["GemmRate", "Peak", "PeakPrecision", "ProbePlace", "ProbeResult"]

PeakPrecision = Literal["float32", "bfloat16", "int8"]


class ProbePlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where one process of a probe runs: as an instance would.

    Attributes:
        cpus: CPUs that it is bound to, at least one.
        threads: Compute threads, at least 1; None leaves the number to the library.
        memory_policy: Where its memory comes from.
        nodes: NUMA nodes for the policy.
    """

    cpus: tuple[int, ...]
    threads: int | None
    memory_policy: MemoryPolicy = "auto"
    nodes: tuple[int, ...] = ()


class GemmRate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How fast the matrix product [m, k] x [k, n] ran in all places at the same time.

    Attributes:
        m: Rows of the input.
        n: Columns of the weights.
        k: Columns of the input.
        gflops: 10^9 operations a second of each place, a multiplication and an addition counting two; of integers for
            `int8`.
    """

    m: int
    n: int
    k: int
    gflops: tuple[float, ...]


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one way to multiply matrices came to.

    Attributes:
        probe: Its name: `torch-linear`, `torch-onednn`, `openvino` or `numpy`.
        rates: One entry a shape, small ones first; empty if it failed.
        reason: Why it failed; None if it did not.
    """

    probe: str
    rates: tuple[GemmRate, ...] = ()
    reason: str | None = None


class Peak(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most that some cores gave for matrix products in one precision.

    Attributes:
        precision: Precision of the operands.
        gflops: 10^9 operations a second of all places together, the best of all probes and shapes, of integers for
            `int8`; None if nothing could be measured.
        reason: Why that is so; None if something could.
        places: Where the processes of each probe ran, at the same time.
        probes: What each probe came to.
    """

    precision: PeakPrecision
    gflops: float | None = None
    reason: str | None = None
    places: tuple[ProbePlace, ...] = ()
    probes: tuple[ProbeResult, ...] = ()
