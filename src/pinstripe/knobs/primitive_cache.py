"""How many compiled kernels oneDNN keeps."""

from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen, Setting
from pinstripe.knobs.values import NeverRefused, WholeNumbers, on_torch

__all__ = ["PrimitiveCache"]

_MOST: Final = 65_536
_READ: Final = "primitive_cache_capacity"


class PrimitiveCache(NeverRefused, WholeNumbers):
    """oneDNN compiles a kernel for each shape that comes, and keeps the last ones (`ONEDNN_PRIMITIVE_CACHE_CAPACITY`).

    With many lengths of texts a large cache takes memory; a small one compiles again and again, 0 for each call.
    """

    name: ClassVar[str] = "primitive_cache"
    summary: ClassVar[str] = "kernels that oneDNN keeps compiled; memory against compiling again"
    accepts: ClassVar[str] = f"0 to {_MOST} (kernels)"
    default: ClassVar[str] = "1024"
    least: ClassVar[int] = 0
    most: ClassVar[int] = _MOST
    worth_a_try: ClassVar[tuple[str, ...]] = ("0", "64", "1024")

    def stranger(self, engine: Engine) -> str | None:
        """Concern torch, whose oneDNN keeps them; OpenVINO and TensorFlow have caches of their own before it."""
        if on_torch(engine):
            return None
        if engine.name == "openvino" or engine.name.startswith("tf-"):
            return "keeps oneDNN's kernels in a cache of its own, and does not say how many"
        return "does not compute with oneDNN"

    def setting(self, value: str, context: Context) -> Setting:
        """Set the variable; the older name counts for less."""
        del context
        return Setting(environment={"ONEDNN_PRIMITIVE_CACHE_CAPACITY": value})

    def effective(self, seen: Seen) -> Effective:
        """Return what oneDNN says; it is asked only where the variable is set."""
        if (found := seen.report.settings.get(_READ)) is not None:
            return Effective(found, f"oneDNN says that it keeps {found}")
        if seen.chosen.get(self.name, AUTO) == AUTO:
            return Effective("unknown", "nothing was asked, and so oneDNN was not asked")
        return Effective("unknown", "oneDNN cannot be asked: this build of torch is stripped, or the variable was lost")
