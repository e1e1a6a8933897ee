"""Pools of two and of four instances on two sockets, each a node of two cores with two hardware threads."""

from typing import Any, get_args

import msgspec

from pinstripe.pool import WorkerSpec
from pinstripe.runtime import MemoryPolicy

from .workers import pool_of, specs_of

__all__ = ["results"]


def results() -> dict[str, Any]:
    """Return all that is tried."""
    return {
        "two": {policy: pool_of(specs_of(instances=2, memory_policy=policy)) for policy in get_args(MemoryPolicy)},
        "four": pool_of(specs_of(instances=4)),
        "far": pool_of(_far_specs()),
        "spanning": pool_of(specs_of()),
        "knobs": pool_of([*specs_of(instances=1, cores=2, smt="all"), *_sabotaged_specs()]),
    }


def _far_specs() -> list[WorkerSpec]:
    """Four instances with memory elsewhere than first touch would put it."""
    wanted = (("bind", (1,)), ("preferred", (1,)), ("interleave", (0, 1)), ("preferred", (0, 1)))
    return [
        msgspec.structs.replace(specs_of(instances=4, memory_policy=policy)[index], nodes=nodes)
        for index, (policy, nodes) in enumerate(wanted)
    ]


def _sabotaged_specs() -> list[WorkerSpec]:
    """Two instances that are started otherwise than their knobs ask."""
    unbound, shared = specs_of(instances=2, cores=1, memory_policy="bind")
    return [
        msgspec.structs.replace(unbound, memory_policy="none"),
        msgspec.structs.replace(shared, cpus=(2, 6)),
    ]
