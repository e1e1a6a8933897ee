"""How many hardware threads of a core compute."""

from typing import ClassVar

from pinstripe.knobs.knob import Context, Effective, Seen
from pinstripe.knobs.values import ForEveryEngine, OfWords, OfWorker

__all__ = ["Smt"]


class Smt(ForEveryEngine, OfWords, OfWorker):
    """Hardware threads of each core. Placement answers it (`Wish.smt`), and the affinity of the worker shows it."""

    name: ClassVar[str] = "smt"
    summary: ClassVar[str] = "hardware threads of each core that compute"
    accepts: ClassVar[str] = "one or all"
    default: ClassVar[str] = "one"
    words: ClassVar[tuple[str, ...]] = ("one", "all")

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse `all` where cores have one hardware thread."""
        if value == "all" and all(len(core.cpus) == 1 for core in context.host.machine.cores):
            return "no core here has a second hardware thread; leave it at one"
        return None

    def effective(self, seen: Seen) -> Effective:
        """Compare the instance's CPUs with the cores they belong to."""
        if seen.cpus is None:
            return Effective("unknown", "the instance is not bound")
        cpus = set(seen.cpus)
        several = any(len(cpus.intersection(core)) > 1 for core in seen.cores)
        return Effective("all", "two of its CPUs share a core") if several else Effective("one", "no CPUs share a core")
