"""What is installed: engines, and what knobs choose from."""

from collections import defaultdict
from typing import Final

from pinstripe.diagnosis.finding import Finding
from pinstripe.diagnosis.observations import Observations
from pinstripe.knobs import knob

__all__ = ["allocators", "engines", "openmp", "openmp_runtimes"]

_OPENMP: Final = {"gomp": "libgomp", "iomp": "libiomp5", "omp": "libomp"}
_INSTALL: Final = "install"
"""In the refusal of a value that a package would mend. Others, such as for another processor, nothing mends."""
_SYSTEM: Final = "the system"


def allocators(seen: Observations) -> Finding | None:
    """Is there an allocator that keeps large buffers, where glibc gives them back?"""
    return _choice(
        seen,
        "allocator",
        subject="allocators",
        named="Allocators",
        cost="glibc gives large buffers back after each forward pass, and pays page faults for them in the next. It "
        "shows with long texts and large batches on many cores; short texts hardly notice.",
    )


def openmp(seen: Observations) -> Finding | None:
    """Which OpenMP runtimes can torch have?"""
    return _choice(
        seen,
        "openmp",
        subject="openmp",
        named="OpenMP runtimes",
        cost="With 16 and more cores an instance Intel's runtime was seen to be up to 15 % faster than GNU's; with few "
        "it makes no odds.",
    )


def _choice(seen: Observations, name: str, *, subject: str, named: str, cost: str) -> Finding | None:
    """Return what of a knob's values is here, and how to have the others."""
    if seen.refused_knobs is None or name not in seen.refused_knobs:
        return None
    refused = seen.refused_knobs[name]
    values = knob(name).values()
    here = ", ".join(value for value in values if value not in refused) or "none"
    compare = f"`pinstripe bench MODEL --{name} all` compares those that are here"
    # By what to install: several values may need the same.
    missing = {why: value for value, why in reversed(refused.items()) if _INSTALL in why}
    if not missing:
        return Finding(
            subject=subject,
            severity="good",
            title=f"{named} to choose from: {len(values) - len(refused)}",
            seen="; ".join(dict.fromkeys([here, *refused.values()])),
            remedy=compare,
            certainty="certain",
        )
    return Finding(
        subject=subject,
        severity="note",
        title=f"{named} not installed: {', '.join(reversed(missing.values()))}",
        seen=f"here: {here}",
        cost=cost,
        remedy=f"{'. '.join(reversed(missing))}. Then {compare}",
        certainty="possible",
    )


def openmp_runtimes(seen: Observations) -> Finding | None:
    """Which OpenMP runtimes may meet in one process?"""
    if seen.libraries is None:
        return None
    paths = defaultdict(list)
    for library in seen.libraries:
        if library.name in _OPENMP:
            paths[_OPENMP[library.name]].append(library.path)
    values = "; ".join(f"{name} of {', '.join(map(_owner, places))}" for name, places in sorted(paths.items()))
    if {"libomp", "libiomp5"} <= paths.keys():
        return Finding(
            subject="openmp-runtimes",
            severity="note",
            title="libomp and libiomp5 are both here: never load both",
            seen=values,
            cost="A process that loads both may hang or crash; they answer to the same names.",
            remedy="`pinstripe bench MODEL --openmp llvm,intel` loads one in a process; elsewhere preload one at most",
            certainty="possible",
        )
    bundled = {owner for path in paths["libgomp"] if (owner := _owner(path)) != _SYSTEM}
    if len(bundled) > 1:
        return Finding(
            subject="openmp-runtimes",
            severity="note",
            title=f"{len(bundled)} packages bring an OpenMP runtime of their own",
            seen=values,
            cost="A process that imports them all has as many thread pools; with OMP_PROC_BIND set, the second sees "
            "one CPU.",
            remedy="do not set OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY; pin the process instead",
            certainty="possible",
        )
    title = (
        f"OpenMP: {', '.join(sorted(name for name in paths if paths[name]))}"
        if values
        else "No OpenMP runtime of its own"
    )
    return Finding(
        subject="openmp-runtimes",
        severity="good",
        title=title,
        seen=values or "engines bring what they need",
        certainty="certain",
    )


def engines(seen: Observations) -> Finding | None:
    """Which engines can run here?"""
    if seen.engines is None:
        return None
    ready = {name: needed for name, needed in seen.engines.items() if all(needed.values())}
    missing = {name: needed for name, needed in seen.engines.items() if name not in ready}
    lacking = dict.fromkeys(
        library for needed in missing.values() for library, version in needed.items() if not version
    )
    versions = dict.fromkeys(f"{library} {needed[library]}" for needed in ready.values() for library in needed)
    if not missing:
        return Finding(
            subject="engines",
            severity="good",
            title=f"All {len(ready)} engines are installed",
            seen=", ".join(versions),
            certainty="certain",
        )
    return Finding(
        subject="engines",
        severity="note" if ready else "problem",
        title=f"Engines not installed: {', '.join(missing)}" if ready else "No engine is installed",
        seen=", ".join(versions) or "none",
        cost="Which engine is fastest depends on model and machine; only those that are installed can be compared."
        if ready
        else "Nothing can run a model here.",
        remedy=f"`pip install {' '.join(lacking)}`",
        certainty="certain",
    )


def _owner(path: str) -> str:
    """Name the Python package that a library came with."""
    _, is_package, inside = path.partition("/site-packages/")
    return inside.partition("/")[0].removesuffix(".libs") if is_package else _SYSTEM
