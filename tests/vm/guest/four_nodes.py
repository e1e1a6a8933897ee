"""Two sockets of two dies; each die is a node, near to the other one of its socket."""

from typing import Any

from .wishes import SIZES, machine_and_placements
from .workers import pool_of, specs_of

__all__ = ["results"]


def results() -> dict[str, Any]:
    """Return all that is tried."""
    return {
        **machine_and_placements((*SIZES, (2, 4), (2, 3))),
        "four": pool_of(specs_of(instances=4)),
        "spanning": pool_of(specs_of(instances=2, cores=4)),
    }
