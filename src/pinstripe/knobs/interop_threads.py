"""How many operators may run beside each other."""

from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.knob import Context, Effective, Seen, Setting
from pinstripe.knobs.values import NeverRefused, WholeNumbers, takes

__all__ = ["InteropThreads"]

_MOST: Final = 64
_SETTINGS: Final = ("num_interop_threads", "inter_op_parallelism_threads")
"""Of torch and TensorFlow, by their own names."""


class InteropThreads(NeverRefused, WholeNumbers):
    """Threads of the pool for whole operators. They share the CPUs of their instance with the compute threads."""

    name: ClassVar[str] = "interop_threads"
    summary: ClassVar[str] = "operators that may run beside each other, on the same CPUs"
    accepts: ClassVar[str] = f"1 to {_MOST}"
    default: ClassVar[str] = "1"
    least: ClassVar[int] = 1
    most: ClassVar[int] = _MOST
    worth_a_try: ClassVar[tuple[str, ...]] = ("1", "2", "4")

    def stranger(self, engine: Engine) -> str | None:
        """Concern engines with an option for it."""
        return None if takes(engine, self.name) else "runs one operator after the other"

    def setting(self, value: str, context: Context) -> Setting:
        """Set the engine's option."""
        del context
        return Setting(options={self.name: int(value)})

    def effective(self, seen: Seen) -> Effective:
        """Return what the library says."""
        for name in _SETTINGS:
            if (found := seen.report.settings.get(name)) is not None:
                return Effective(found, f"{name} is {found}")
        return Effective("unknown", f"{seen.engine.name} does not say")
