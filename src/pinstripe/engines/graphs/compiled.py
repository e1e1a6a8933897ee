"""What a library makes of a graph for this very CPU: made by the first instance, mapped into memory by all."""

import ctypes
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from pinstripe.cache import cache_directory, load_once_built
from pinstripe.machine import Machine, read_machine

__all__ = ["load_compiled"]

T = TypeVar("T")


def load_compiled(
    library: str,
    made_from: Mapping[str, object],
    build: Callable[[Path], None],
    load: Callable[[Path], T],
    damage: type[Exception],
) -> T:
    """Load a library's compiled graph, having it built if there is none, or only a damaged one.

    There is one for each memory node, since the pages of a mapped file lie where it was first read: the instances of a
    node share them, and none reads its weights from afar.

    Args:
        library: Its name.
        made_from: What the result depends on, beside the model of the CPU and its instructions: version of the
            library, digest of the graph, settings.
        build: Fills the empty directory that it is given.
        load: Loads what is in the directory that it is given.
        damage: What `load` raises where it cannot.

    Raises:
        ExecutionError: The cache cannot be written.
    """
    machine = read_machine()
    content = [library, sorted(made_from.items()), machine.model_name, machine.isa]
    key = hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:32]

    def build_and_trim(directory: Path) -> None:
        build(directory)
        _return_freed_memory()

    directory = cache_directory() / "compiled" / f"{library}-{key}-{_node(machine)}"
    return load_once_built(directory, build_and_trim, load, damage)


def _node(machine: Machine) -> str:
    """Return the memory node of this process's CPUs; `any` if they belong to several."""
    cpus = os.sched_getaffinity(0)
    return next((f"node{node.id}" for node in machine.nodes if cpus <= set(node.cpus)), "any")


def _return_freed_memory() -> None:
    """Return what building has freed to the system; without it, the first instance keeps the size of all weights.

    Only the C library's allocator of GNU has to be told.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
