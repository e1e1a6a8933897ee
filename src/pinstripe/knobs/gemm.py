"""Which library multiplies matrices."""

from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.engine_option import takes
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen, Setting

__all__ = ["Gemm"]

_NAMES: Final = {"mkl": "MKL", "onednn": "oneDNN", "torchao": "torchao", "torch": "torch itself"}


class Gemm:
    """MKL as torch calls it, or oneDNN with weights packed once while loading; auto takes what was measured faster."""

    name: ClassVar[str] = "gemm"
    summary: ClassVar[str] = "library that multiplies by the weights of linear layers"
    accepts: ClassVar[str] = "mkl or onednn"
    default: ClassVar[str] = AUTO

    def values(self) -> tuple[str, ...]:
        """Return both."""
        return ("mkl", "onednn")

    def is_value(self, text: str) -> bool:
        """Return whether it is one of both."""
        return text in self.values()

    def stranger(self, engine: Engine) -> str | None:
        """Concern engines with an option for it."""
        return None if takes(engine, self.name) else "has no choice of it"

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse a library that does not go together with another knob; the rest depends on the build of torch."""
        if value == "mkl" and (fpmath := context.chosen.get("fpmath", "strict")) not in {"strict", AUTO}:
            return f"MKL multiplies float32 as it is, not by fpmath={fpmath}; leave one of them out"
        return None

    def setting(self, value: str, context: Context) -> Setting:
        """Set the engine's option."""
        del context
        return Setting(options={self.name: value})

    def effective(self, seen: Seen) -> Effective:
        """Return the library that was heard multiplying; quantized weights have only one."""
        settings = seen.report.settings
        found = settings.get("multiplied_by", settings.get("gemm", "unknown"))
        return Effective(
            found, f"{_NAMES.get(found, found)} multiplies, with {settings.get('packed_linears')} layers packed"
        )
