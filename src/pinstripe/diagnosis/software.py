"""What is installed: allocators, OpenMP runtimes, engines."""

from collections import defaultdict
from typing import Final

from pinstripe.diagnosis.finding import Finding
from pinstripe.diagnosis.observations import Observations
from pinstripe.placement.cores import cut_to

__all__ = ["allocators", "engines", "intel_openmp", "openmp_runtimes"]

_ALLOCATORS: Final = ("tcmalloc", "jemalloc", "mimalloc")
_OPENMP: Final = {"gomp": "libgomp", "iomp": "libiomp5", "omp": "libomp"}
_MANY_CORES: Final = 16
_SYSTEM: Final = "the system"


def allocators(seen: Observations) -> Finding | None:
    """Is there an allocator that keeps large buffers, where glibc gives them back?"""
    if seen.libraries is None:
        return None
    found = {library.name: library.path for library in seen.libraries if library.name in _ALLOCATORS}
    if found:
        path = next(found[name] for name in _ALLOCATORS if name in found)
        return Finding(
            subject="allocators",
            severity="good",
            title=f"{', '.join(name for name in _ALLOCATORS if name in found)} can be preloaded",
            seen=", ".join(found.values()),
            remedy=f"LD_PRELOAD={path}, for the service alone",
            certainty="certain",
        )
    return Finding(
        subject="allocators",
        severity="note",
        title="None of tcmalloc, jemalloc and mimalloc is installed",
        seen="not in the loader's directories, nor in this Python environment",
        cost="glibc gives large buffers back after each forward pass, and pays page faults for them in the next. It "
        "shows with "
        "long texts and large batches on many cores; short texts hardly notice.",
        remedy="`sudo apt install libtcmalloc-minimal4` (Debian, Ubuntu) or `pip install cmeel-mimalloc`, then "
        "LD_PRELOAD it "
        "for the service alone",
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
            remedy="see what a process has loaded: `python -m threadpoolctl -i torch`; preload one of them at most",
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


def intel_openmp(seen: Observations) -> Finding | None:
    """Could torch gain from Intel's OpenMP runtime? It was seen to with many cores an instance."""
    cores = len(cut_to(seen.machine.cores, seen.machine.allowed))
    has_torch = bool((seen.engines or {}).get("torch-eager", {}).get("torch"))
    has_iomp = any(library.name == "iomp" for library in seen.libraries or ())
    if seen.libraries is None or has_iomp or not has_torch or cores < _MANY_CORES or "avx2" not in seen.machine.isa:
        return None
    return Finding(
        subject="intel-openmp",
        severity="note",
        title="Intel's OpenMP runtime (libiomp5) is not installed",
        seen=f"torch runs on libgomp; {cores} cores",
        cost="With 16 and more cores an instance it was seen to be up to 15 % faster than libgomp; with few it makes "
        "no odds.",
        remedy="`pip install intel-openmp`, then LD_PRELOAD its libiomp5.so for the service alone, and measure",
        certainty="possible",
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
