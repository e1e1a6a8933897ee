"""Real pools of workers with the fake engine, which fill 16 MiB in each forward pass."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact
from pinstripe.errors import PinstripeError
from pinstripe.machine import read_machine
from pinstripe.models import TokenBatch
from pinstripe.pool import Pool, WorkerSpec, set_up
from pinstripe.testing.fake_engine import fake_network

from .processes import memory_areas, thread_cpus
from .progress import tell

__all__ = ["pool_of", "refusal_of", "specs_of"]

_GROWTH_BYTES = 16 << 20


def specs_of(**fields: Any) -> tuple[WorkerSpec, ...]:
    """Return what a configuration's workers are started with on this machine."""
    configuration = Configuration(engine="fake", options={"grow_bytes": _GROWTH_BYTES}, **fields)
    nothing = Artefact(format="none", path="", origin="model")
    return set_up(configuration, read_machine(), fake_network(), lambda _: nothing).specs


def refusal_of(**fields: Any) -> Any:
    """Return how this machine refuses a configuration; None if it does not."""
    try:
        specs_of(**fields)
    except PinstripeError as error:
        return {"error": type(error).__name__, "message": str(error)}
    return None


def pool_of(specs: Sequence[WorkerSpec]) -> Any:
    """Open a pool, run a batch in each instance, and return what the evidence and the kernel say of each."""
    tell(f"a pool of {len(specs)}: {[(spec.cpus, spec.nodes, spec.memory_policy) for spec in specs]}")
    try:
        return asyncio.run(_run(specs))
    except PinstripeError as error:
        return {"error": type(error).__name__, "message": str(error)}


async def _run(specs: Sequence[WorkerSpec]) -> list[dict[str, Any]]:
    batch = TokenBatch(ids=np.ones((2, 8), np.int32), lengths=np.full(2, 8, np.int32))
    async with Pool(specs, restart=False) as pool:
        results = await asyncio.gather(*(pool.submit(batch, instance=index) for index in range(pool.capacity)))
        evidence = await pool.evidence()
        return [
            {
                "ran": result.instance,
                "affinity": thread_cpus(one.process.pid),
                "area": _largest(memory_areas(one.process.pid)),
                **{
                    name: msgspec.to_builtins(getattr(one, name))
                    for name in ("index", "cpus", "memory", "knobs", "problems")
                },
                "threads": one.engine.threads,
                "node_memory": msgspec.to_builtins(one.process.node_memory),
            }
            for result, one in zip(results, evidence, strict=True)
        ]


def _largest(areas: Sequence[str]) -> str:
    """Return the area with the most memory of the process's own: what the engine has filled."""

    def pages(area: str) -> int:
        found = re.search(r" anon=(\d+)", area)
        return int(found[1]) if found else 0

    return max(areas, key=pages)
