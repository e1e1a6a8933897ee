"""Which library multiplies matrices."""

from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen
from pinstripe.knobs.values import EngineOption, OfWords, takes

__all__ = ["Gemm"]

_NAMES: Final = {"mkl": "MKL", "onednn": "oneDNN", "torchao": "torchao", "torch": "torch itself"}


class Gemm(EngineOption, OfWords):
    """MKL as torch calls it, or oneDNN with weights packed once while loading; auto takes what was measured faster."""

    name: ClassVar[str] = "gemm"
    summary: ClassVar[str] = "library that multiplies by the weights of linear layers"
    accepts: ClassVar[str] = "mkl or onednn"
    default: ClassVar[str] = AUTO
    words: ClassVar[tuple[str, ...]] = ("mkl", "onednn")

    def stranger(self, engine: Engine) -> str | None:
        """Concern engines with an option for it."""
        return None if takes(engine, self.name) else "has no choice of it"

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse a library that does not go together with precision or fpmath; the rest depends on torch's build."""
        if context.precision == "int8":
            return "torch multiplies int8 by torchao alone; leave one of them out"
        if value == "mkl" and context.precision not in {None, "float32"}:
            return f"torch multiplies {context.precision} by oneDNN, MKL only float32; use onednn, or leave one out"
        if value == "mkl" and (fpmath := context.chosen.get("fpmath", "strict")) not in {"strict", AUTO}:
            return f"MKL multiplies float32 as it is, not by fpmath={fpmath}; leave one of them out"
        return None

    def effective(self, seen: Seen) -> Effective:
        """Return the library that was heard multiplying; quantized weights have only one."""
        settings = seen.report.settings
        found = settings.get("multiplied_by", settings.get("gemm", "unknown"))
        return Effective(
            found, f"{_NAMES.get(found, found)} multiplies, with {settings.get('packed_linears')} layers packed"
        )
