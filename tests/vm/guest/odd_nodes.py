"""Two common nodes, one without memory (2) and one without CPUs (3)."""

from typing import Any

import msgspec

from pinstripe.machine import read_machine
from pinstripe.placement import Wish, place

from .processes import placed
from .wishes import machine_and_placements

__all__ = ["results"]


def results() -> dict[str, Any]:
    """Return all that is tried."""
    placement = place(read_machine(), Wish(instances=3))
    return {
        **machine_and_placements(),
        "three": msgspec.to_builtins(placement),
        "processes": [placed(cpus=one.cpus, nodes=one.nodes) for one in placement.instances],
        "bound": [placed(cpus=one.cpus, nodes=one.nodes, memory_policy="bind") for one in placement.instances],
        "without_memory": {
            policy: placed(cpus=(4, 5), nodes=(2,), memory_policy=policy)
            for policy in ("auto", "preferred", "bind", "interleave")
        },
        "first_touch": placed(cpus=(4, 5), memory_policy="none"),
        "without_cpus": placed(cpus=(2, 3), nodes=(3,), memory_policy="bind"),
    }
