"""In which precision float32 is multiplied."""

from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.knob import Context, Effective, Seen
from pinstripe.knobs.values import EngineOption, OfWords, takes

__all__ = ["Fpmath"]

_AMX: Final = "amx_bf16"
_WORDS: Final = {"highest": "strict", "medium": "bf16"}
"""Values by the names of `torch.get_float32_matmul_precision`."""


class Fpmath(EngineOption, OfWords):
    """Products of float32 matrices may be rounded to bfloat16, which changes results: see `pinstripe accuracy`.

    oneDNN does it on CPUs with AMX, and nowhere else; the engine tries it out before it says that it is so.
    """

    name: ClassVar[str] = "fpmath"
    summary: ClassVar[str] = "products of float32 matrices: as they are, or rounded to bfloat16 (changes results)"
    accepts: ClassVar[str] = "strict or bf16"
    default: ClassVar[str] = "strict"
    words: ClassVar[tuple[str, ...]] = ("strict", "bf16")

    def stranger(self, engine: Engine) -> str | None:
        """Concern engines with an option for it."""
        return None if takes(engine, self.name) else "multiplies float32 as it is"

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse bfloat16 on CPUs, and under a limit of instructions, where oneDNN would not use it."""
        if value != "bf16":
            return None
        if context.precision not in {None, "float32"}:
            return f"it rounds products of float32, and precision={context.precision} has none; leave one of them out"
        if _AMX not in context.host.machine.isa:
            return f"oneDNN rounds float32 only on CPUs with {_AMX}, which this one lacks; use strict"
        if (isa := context.chosen.get("isa", "amx")) not in {"auto", "amx"}:
            return f"oneDNN rounds float32 only with AMX, which isa={isa} keeps it from; leave one of them out"
        return None

    def effective(self, seen: Seen) -> Effective:
        """Return what torch says; that bf16 rounds was tried out when the engine loaded."""
        name = seen.report.settings.get("float32_matmul_precision", "unknown")
        return Effective(_WORDS.get(name, name), f"torch's float32_matmul_precision is {name}")
