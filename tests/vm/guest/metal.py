"""Two sockets of 24 cores with two hardware threads, as a c5.metal has."""

from typing import Any

import msgspec

from pinstripe.machine import read_machine
from pinstripe.placement import Wish, place

from .processes import placed
from .wishes import machine_and_placements

__all__ = ["results"]


def results() -> dict[str, Any]:
    """Return all that is tried."""
    machine = read_machine()
    eight = place(machine, Wish(instances=8))
    return {
        **machine_and_placements(((None, None), (2, None), (8, None), (None, 5), (8, 5), (9, 5))),
        "two": msgspec.to_builtins(place(machine, Wish(instances=2))),
        "eight": msgspec.to_builtins(eight),
        "last_of_eight": placed(cpus=eight.instances[7].cpus, nodes=eight.instances[7].nodes, memory_policy="bind"),
    }
