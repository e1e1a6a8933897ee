"""How many hardware threads of a core compute."""

from typing import ClassVar

from pinstripe.engines import Engine
from pinstripe.knobs.knob import Context, Effective, Seen, Setting

__all__ = ["Smt"]


class Smt:
    """Hardware threads of each core. Placement answers it (`Wish.smt`), and the affinity of the worker shows it."""

    name: ClassVar[str] = "smt"
    summary: ClassVar[str] = "hardware threads of each core that compute"
    accepts: ClassVar[str] = "one or all"
    default: ClassVar[str] = "one"

    def values(self) -> tuple[str, ...]:
        """Return both."""
        return ("one", "all")

    def is_value(self, text: str) -> bool:
        """Return whether it is one of both."""
        return text in self.values()

    def stranger(self, engine: Engine) -> str | None:
        """Concern every engine."""
        del engine
        return None

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse `all` where cores have one hardware thread."""
        if value == "all" and all(len(core.cpus) == 1 for core in context.host.machine.cores):
            return "no core here has a second hardware thread; leave it at one"
        return None

    def setting(self, value: str, context: Context) -> Setting:
        """Change nothing: the instance's CPUs are it."""
        del value, context
        return Setting()

    def effective(self, seen: Seen) -> Effective:
        """Compare the instance's CPUs with the cores they belong to."""
        if seen.cpus is None:
            return Effective("unknown", "the instance is not bound")
        cpus = set(seen.cpus)
        several = any(len(cpus.intersection(core)) > 1 for core in seen.cores)
        return Effective("all", "two of its CPUs share a core") if several else Effective("one", "no CPUs share a core")
