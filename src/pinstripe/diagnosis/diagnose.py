"""All findings about a machine."""

from collections.abc import Callable
from typing import Final

from pinstripe.diagnosis import clock, cores, limits, measured, memory, neighbours, nodes, software
from pinstripe.diagnosis.finding import SEVERITIES, Finding
from pinstripe.diagnosis.observations import Observations

__all__ = ["diagnose"]

_CHECKS: Final[tuple[Callable[[Observations], Finding | None], ...]] = (
    limits.fractional_quota,
    limits.cpu_quota,
    limits.throttled,
    clock.governor,
    limits.isolated,
    neighbours.neighbours,
    neighbours.steal,
    measured.noise,
    software.engines,
    cores.instruction_sets,
    memory.free_memory,
    nodes.nodes,
    nodes.far_memory,
    nodes.memory_policy,
    cores.smt,
    cores.hybrid,
    limits.shared_cores,
    clock.boost,
    clock.clock_cap,
    clock.energy_preference,
    cores.virtual_machine,
    software.allocators,
    nodes.caches,
    nodes.memory_only_nodes,
    memory.huge_pages,
    software.openmp,
    limits.affinity,
    software.openmp_runtimes,
    cores.offline,
    neighbours.load,
    measured.peak,
)
"""By what they cost where they hold, the most first."""


def diagnose(seen: Observations) -> tuple[Finding, ...]:
    """Return the findings about a machine, the most important first: by severity, then by what they usually cost."""
    found = [finding for check in _CHECKS if (finding := check(seen)) is not None]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))
