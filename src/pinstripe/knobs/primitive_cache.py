"""How many compiled kernels oneDNN keeps."""

from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.knob import Context, Effective, Seen, Setting

__all__ = ["PrimitiveCache"]

_MOST: Final = 65_536
_READ: Final = "primitive_cache_capacity"


class PrimitiveCache:
    """oneDNN compiles a kernel for each shape that comes, and keeps the last ones (`ONEDNN_PRIMITIVE_CACHE_CAPACITY`).

    With many lengths of texts a large cache takes memory; a small one compiles again and again, 0 for each call.
    """

    name: ClassVar[str] = "primitive_cache"
    summary: ClassVar[str] = "kernels that oneDNN keeps compiled; memory against compiling again"
    accepts: ClassVar[str] = f"0 to {_MOST} (kernels)"
    default: ClassVar[str] = "1024"

    def values(self) -> tuple[str, ...]:
        """Return none, some, and oneDNN's default."""
        return ("0", "64", "1024")

    def is_value(self, text: str) -> bool:
        """Return whether it is a number in range."""
        return text.isdecimal() and text == str(int(text)) and int(text) <= _MOST

    def stranger(self, engine: Engine) -> str | None:
        """Concern torch, whose oneDNN keeps them; OpenVINO and TensorFlow have caches of their own before it."""
        if engine.distributions[:1] == ("torch",):
            return None
        if engine.name == "openvino" or engine.name.startswith("tf-"):
            return "keeps oneDNN's kernels in a cache of its own, and does not say how many"
        return "does not compute with oneDNN"

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse nothing."""
        del value, context
        return None

    def setting(self, value: str, context: Context) -> Setting:
        """Set the variable; the older name counts for less."""
        del context
        return Setting(environment={"ONEDNN_PRIMITIVE_CACHE_CAPACITY": value})

    def effective(self, seen: Seen) -> Effective:
        """Return what oneDNN says; it is asked only where the variable is set."""
        if (found := seen.report.settings.get(_READ)) is not None:
            return Effective(found, f"oneDNN says that it keeps {found}")
        return Effective("unknown", "the variable is not set in the worker, or this build of torch is stripped")
