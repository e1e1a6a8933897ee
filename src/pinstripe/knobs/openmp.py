"""Which OpenMP runtime computes."""

import re
from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen, Setting
from pinstripe.knobs.preloads import inherited_preloads
from pinstripe.knobs.values import OfWords
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


class Openmp(OfWords):
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
    words: ClassVar[tuple[str, ...]] = tuple(_WORDS.values())

    def stranger(self, engine: Engine) -> str | None:
        """Concern engines that compute with OpenMP."""
        return _OTHERWISE.get(engine.threading)

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse runtimes that are not installed; GNU's comes with the engine."""
        return None if value == "gnu" or _installed(value, context) else _PACKAGES[value]

    def setting(self, value: str, context: Context) -> Setting:
        """Preload the runtime without those that a worker would inherit, and bind the threads of a bound instance.

        Two of Intel's and LLVM's in one process may wait for each other for ever.
        """
        preload = () if value == "gnu" else (_installed(value, context)[-1],)
        unload = tuple(path for word, path in _inherited() if not word == value == "gnu")
        environment = {} if context.cpus is None else _binding(value, context.cpus)
        return Setting(environment=environment, preload=preload, unload=unload)

    def effective(self, seen: Seen) -> Effective:
        """Compare with the runtime that served a parallel region, and with where its threads were."""
        found = seen.observation.openmp
        if found is None:
            why = seen.observation.unread.get("openmp", "none is loaded")
            return Effective("unknown", f"which OpenMP runtime computes cannot be told: {why}")
        word, served = _WORDS[found.name], _served(found, seen)
        if seen.cpus is None or _each_on_its_own(found, seen.cpus):
            return Effective(word, served)
        masks = [format_cpu_list(thread.cpus) for thread in found.team]
        if len({*masks}) == 1 and len(found.team[0].cpus) > 1:
            return Effective(
                f"{word}, threads not bound", f"{served}, its threads are not bound: each may run on CPUs {masks[0]}"
            )
        asked = format_cpu_list(seen.cpus)
        where = f"on CPUs {'; '.join(masks)}, not one on each of {asked}"
        return Effective(f"{word}, threads elsewhere", f"{served}, its threads {where}")


def expected_runtime(context: Context) -> str:
    """Return which runtime will compute: the one that is asked for or already preloaded, or else GNU's."""
    asked = context.chosen.get(Openmp.name, AUTO)
    return asked if asked != AUTO else next((word for word, _ in _inherited()), "gnu")


def _installed(value: str, context: Context) -> list[str]:
    """Return the files of a runtime, the newest version last."""
    paths = (library.path for library in context.host.libraries if library.name == _LIBRARIES[value])
    return sorted(paths, key=lambda path: [int(number) for number in re.findall(r"\d+", path)])


def _inherited() -> list[tuple[str, str]]:
    """Return the OpenMP runtimes, word and path, that a worker inherits because they are preloaded here."""
    found = loaded_threading_libraries(inherited_preloads())
    return [(_WORDS[library.name], library.path) for library in found if library.name in _WORDS]


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
