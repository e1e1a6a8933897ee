"""Two sockets whose CPUs take turns: even ones on node 0, odd ones on node 1."""

from typing import Any

from .wishes import machine_and_placements
from .workers import pool_of, specs_of

__all__ = ["results"]


def results() -> dict[str, Any]:
    """Return all that is tried."""
    return {**machine_and_placements(), "pool": pool_of(specs_of(instances=2, memory_policy="bind"))}
