"""Whether numbers too small for full precision count as zero."""

from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.knob import AUTO, Effective, Seen
from pinstripe.knobs.values import EngineOption, NeverRefused, OfWords, takes

__all__ = ["FlushDenormals"]

_TORCH: Final = "flush_denormals"
_OPENVINO: Final = "CPU_DENORMALS_OPTIMIZATION"
_ONNXRUNTIME: Final = "session.set_denormal_as_zero"
_CALLING: Final = "calling_thread_flushes"


class FlushDenormals(EngineOption, NeverRefused, OfWords):
    """Denormal numbers, which many CPUs compute with a hundred times more slowly, are taken for zero.

    It is a mode of each thread. Torch has it computed by all of them; OpenVINO reads its setting back; ONNX Runtime
    does so for its pool, and the mode of the calling thread, which computes too, is seen.
    """

    name: ClassVar[str] = "flush_denormals"
    summary: ClassVar[str] = "numbers too small for full precision (below 1.2e-38) count as zero"
    accepts: ClassVar[str] = "on or off"
    default: ClassVar[str] = AUTO
    words: ClassVar[tuple[str, ...]] = ("on", "off")

    def stranger(self, engine: Engine) -> str | None:
        """Concern engines with an option for it; TensorFlow sets the mode in its threads by itself."""
        if takes(engine, self.name):
            return None
        return "always flushes them" if engine.name.startswith("tf-") else "has no setting for it"

    def effective(self, seen: Seen) -> Effective:
        """Return what was computed, or read back."""
        settings = seen.report.settings
        if _TORCH in settings:
            return _of_products(settings[_TORCH])
        if _OPENVINO in settings:
            value = "on" if settings[_OPENVINO] == "True" else "off"
            return Effective(value, f"{_OPENVINO} is {settings[_OPENVINO]}")
        pool, calling = settings.get(_ONNXRUNTIME, "0") == "1", settings.get(_CALLING) == "true"
        if pool == calling:
            both = "both its pool and the calling thread flush them" if pool else "none of its threads flushes them"
            return Effective("on" if pool else "off", both)
        doing, other = ("its pool", "the calling thread") if pool else ("the calling thread", "its pool")
        return Effective("partly", f"{doing} flushes them and {other} does not")


def _of_products(found: str) -> Effective:
    if found in {"on", "off"}:
        return Effective(found, f"all threads {'flush' if found == 'on' else 'keep'} them, as a computation shows")
    return Effective("partly", f"{found} of denormal numbers were flushed")
