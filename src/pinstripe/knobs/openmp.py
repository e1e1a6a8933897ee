"""Which OpenMP runtime computes."""

import os
import re
from collections.abc import Mapping
from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen, Setting
from pinstripe.machine import format_cpu_list
from pinstripe.runtime import OpenmpObservation, loaded_threading_libraries

__all__ = ["Openmp", "expected_runtime"]

_WORDS: Final = {"gomp": "gnu", "iomp": "intel", "omp": "llvm"}
_LIBRARIES: Final = {word: library for library, word in _WORDS.items()}
_PACKAGES: Final = {
    "intel": "libiomp5 is not installed; pip install intel-openmp (x86-64 only)",
    "llvm": "libomp is not installed; apt-get install libomp5-14 (or another version)",
}
_OTHERWISE: Final = {
    "tbb": "computes with TBB",
    "own": "computes with a thread pool of its own",
    "none": "has no compute threads",
}
_PRELOAD: Final = "LD_PRELOAD"


class Openmp:
    """OpenMP runtime of the engines that compute with one.

    All speak GNU's interface, which PyTorch is built for, so a runtime that is preloaded takes the place of the one
    that comes with it. Of a bound instance each runs one compute thread on each CPU: GNU's by OMP_PLACES and
    OMP_PROC_BIND (libgomp manual, "Environment Variables"), the others by KMP_AFFINITY (LLVM/OpenMP Runtimes,
    "Environment Variables"), which they put before those two.
    """

    name: ClassVar[str] = "openmp"
    summary: ClassVar[str] = "OpenMP runtime that computes; of a bound instance with each thread on a CPU of its own"
    accepts: ClassVar[str] = "gnu, intel or llvm"
    default: ClassVar[str] = AUTO

    def values(self) -> tuple[str, ...]:
        """Return the runtimes."""
        return tuple(_WORDS.values())

    def is_value(self, text: str) -> bool:
        """Return whether it is one of them."""
        return text in self.values()

    def stranger(self, engine: Engine) -> str | None:
        """Concern engines that compute with OpenMP."""
        return _OTHERWISE.get(engine.threading)

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse runtimes that are not installed, and GNU's where another is preloaded already."""
        if value != "gnu":  # it comes before those that are preloaded already
            return None if _installed(value, context) else _PACKAGES[value]
        for word, path in _inherited():
            if word != "gnu":
                return f"{_PRELOAD} has {path}, which workers inherit and which would take its place; unset it"
        return None

    def setting(self, value: str, context: Context) -> Setting:
        """Preload the runtime (GNU's comes with the engine), and bind the threads of a bound instance."""
        preload = () if value == "gnu" else (_installed(value, context)[-1],)
        return Setting(environment={} if context.cpus is None else _binding(value, context.cpus), preload=preload)

    def effective(self, seen: Seen) -> Effective:
        """Compare with the runtime that served a parallel region, and with where its threads were."""
        found = seen.observation.openmp
        if found is None:
            why = seen.observation.unread.get("openmp", "none is loaded")
            return Effective("unknown", f"which OpenMP runtime computes cannot be told: {why}")
        word, served = _WORDS[found.name], _served(found, seen)
        if seen.cpus is None or _each_on_its_own(found, seen.cpus):
            return Effective(word, served)
        masks = "; ".join(format_cpu_list(thread.cpus) for thread in found.team)
        asked = format_cpu_list(seen.cpus)
        return Effective(
            f"{word}, threads not bound", f"{served}, its threads on CPUs {masks}, not one on each of {asked}"
        )


def expected_runtime(context: Context) -> str:
    """Return which runtime will compute: the one that is asked for or already preloaded, or else GNU's."""
    asked = context.chosen.get(Openmp.name, AUTO)
    return asked if asked != AUTO else next((word for word, _ in _inherited()), "gnu")


def _installed(value: str, context: Context) -> list[str]:
    """Return the files of a runtime, the newest version last."""
    paths = (library.path for library in context.host.libraries if library.name == _LIBRARIES[value])
    return sorted(paths, key=lambda path: [int(number) for number in re.findall(r"\d+", path)])


def _inherited(environment: Mapping[str, str] = os.environ) -> list[tuple[str, str]]:
    """Return the OpenMP runtimes, word and path, that a worker inherits because they are preloaded here."""
    paths = environment.get(_PRELOAD, "").replace(":", " ").split()
    return [(_WORDS[found.name], found.path) for found in loaded_threading_libraries(paths) if found.name in _WORDS]


def _binding(value: str, cpus: tuple[int, ...]) -> dict[str, str | None]:
    if value == "gnu":
        return {"OMP_PLACES": ",".join(f"{{{cpu}}}" for cpu in cpus), "OMP_PROC_BIND": "close"}
    return {"KMP_AFFINITY": f"granularity=fine,explicit,proclist=[{','.join(map(str, cpus))}]"}


def _each_on_its_own(found: OpenmpObservation, cpus: tuple[int, ...]) -> bool:
    """Return whether the team has one thread on each CPU, and each thread one CPU."""
    return sorted(thread.cpus for thread in found.team) == [(cpu,) for cpu in sorted(cpus)]


def _served(found: OpenmpObservation, seen: Seen) -> str:
    others = [
        library.path.rpartition("/")[2]
        for library in seen.process.threading_libraries
        if library.name in _WORDS and library.path != found.path
    ]
    idle = f" and {', '.join(others)} {'is' if len(others) == 1 else 'are'} idle" if others else ""
    return f"{found.path.rpartition('/')[2]} serves{idle}"
