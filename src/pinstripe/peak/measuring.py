"""Measuring the peak of some cores."""

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from typing import Final

from pinstripe.engines.precision import has_bfloat16
from pinstripe.errors import PinstripeError
from pinstripe.machine import Machine
from pinstripe.peak.description import GemmRate, Peak, PeakPrecision, ProbePlace, ProbeResult
from pinstripe.peak.messages import Prepare, Prepared, Ran, Ready, Run
from pinstripe.peak.process import ProbeProcess, probe_process
from pinstripe.placement import Wish, place
from pinstripe.pool import Setup

__all__ = ["machine_place", "measure_peak", "probe_places"]

_SHAPES: Final = (
    (256, 3072, 768),
    (1024, 1024, 1024),
    (512, 3072, 768),
    (512, 768, 3072),
    (1024, 4096, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
)
"""m, n, k, by rising number of operations. Those with 768 and 3072 are BERT's feed-forward layers."""
_WINDOW_S: Final = 0.15
_LONGEST_CALL_S: Final = 0.1
"""A product that would take longer than this is left out: for so few cores a smaller one is large enough, and memory
and time stay bounded."""
_BUDGET_S: Final = 2.0
"""Time after which a probe is given no further shape."""
_ANSWER_LIMIT_S: Final = 60.0  # torch is imported in 2 s; from a cold network file system it may take many
_PROBES: Final[dict[PeakPrecision, tuple[str, ...]]] = {
    "float32": ("torch-linear", "torch-onednn", "openvino", "numpy"),
    "bfloat16": ("torch-linear", "torch-onednn", "openvino"),
    "int8": ("torch-onednn", "openvino"),
}


async def measure_peak(
    places: Sequence[ProbePlace],
    precision: PeakPrecision,
    isa: Collection[str],
    *,
    answer_limit_s: float = _ANSWER_LIMIT_S,
) -> Peak:
    """Measure how many floating-point operations a second some cores give for large matrix products.

    Each probe (one library, one way to multiply) runs as one process a place, bound and with threads as an instance
    would be; all of them compute at the same time, shape by shape, and their rates are added up. The peak is the best
    of all probes and shapes. A probe takes about 2 s and the time to import its library; probes come one after the
    other. What a probe could not do is its `reason`, and does not end the others.

    Args:
        places: Where the processes of a probe run, at least one; see `probe_places` and `machine_place`.
        precision: Precision of the operands. `int8` is measured wherever a library multiplies 8-bit integers.
        isa: Instruction sets of the processor (`Machine.isa`); bfloat16 is measured only where it has them.
        answer_limit_s: Time that a probe has to import its library, and for each shape, in seconds.

    Returns:
        The peak; `gflops` is None, with a reason, where the instruction set is missing, or every probe failed.
    """
    missing = _missing(precision, isa)
    if missing is not None:
        return Peak(precision=precision, reason=missing)
    probes = tuple([await _measure_probe(name, places, precision, answer_limit_s) for name in _PROBES[precision]])
    gflops = max((sum(rate.gflops) for probe in probes for rate in probe.rates), default=None)
    return Peak(
        precision=precision,
        gflops=gflops,
        reason="; ".join(f"{probe.probe}: {probe.reason}" for probe in probes) if gflops is None else None,
        places=tuple(places),
        probes=probes,
    )


def probe_places(setup: Setup, machine: Machine) -> tuple[ProbePlace, ...]:
    """Return the places of a configuration's instances; for unpinned ones a single one with all that it may use."""
    if setup.placement is None:
        return (ProbePlace(cpus=machine.allowed, threads=None, memory_policy="none"),)
    return tuple(
        ProbePlace(
            cpus=spec.cpus or machine.allowed,
            threads=spec.load.threads,
            memory_policy=spec.memory_policy,
            nodes=spec.nodes,
        )
        for spec in setup.specs
    )


def machine_place(machine: Machine) -> ProbePlace:
    """Return the place of one process on all cores that this process may use, as `pinstripe bench` would place it.

    Raises:
        PlacementError: There is no core for it.
    """
    (instance,) = place(machine, Wish(instances=1)).instances
    return ProbePlace(cpus=instance.cpus, threads=len(instance.cpus), nodes=instance.nodes)


def _missing(precision: PeakPrecision, isa: Collection[str]) -> str | None:
    if precision == "bfloat16" and not has_bfloat16(isa):
        return "this processor has no instructions for bfloat16"
    return None


async def _measure_probe(
    name: str, places: Sequence[ProbePlace], precision: PeakPrecision, answer_limit_s: float
) -> ProbeResult:
    try:
        async with AsyncExitStack() as stack:
            processes = [
                await stack.enter_async_context(probe_process(name, precision, one, answer_limit_s=answer_limit_s))
                for one in places
            ]
            await asyncio.gather(*(process.answer(Ready) for process in processes))
            return ProbeResult(probe=name, rates=await _rates(processes))
    except PinstripeError as error:
        return ProbeResult(probe=name, reason=str(error))


async def _rates(processes: Sequence[ProbeProcess]) -> tuple[GemmRate, ...]:
    """Go through the shapes, all processes at the same time."""
    deadline = time.monotonic() + _BUDGET_S
    rates: list[GemmRate] = []
    slowest_flops = None
    for m, n, k in _SHAPES:
        flop = 2 * m * n * k
        if slowest_flops is not None and flop / slowest_flops > _LONGEST_CALL_S:
            break
        prepared = await asyncio.gather(*(process.ask(Prepare(m, n, k), Prepared) for process in processes))
        ran = await asyncio.gather(*(process.ask(Run(int(_WINDOW_S * 1e9)), Ran) for process in processes))
        slowest_flops = flop / max(one.call_ns for one in prepared) * 1e9
        rates.append(GemmRate(m=m, n=n, k=k, gflops=tuple(flop * one.calls / one.elapsed_ns for one in ran)))
        if time.monotonic() > deadline:
            break
    return tuple(rates)
