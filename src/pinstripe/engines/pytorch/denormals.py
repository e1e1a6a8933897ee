"""Whether torch's compute threads take numbers too small for full precision for zero."""

from typing import Any, Final, Literal

from pinstripe.errors import EngineError

__all__ = ["FlushDenormals", "flushed_denormals", "set_flush_denormals"]

FlushDenormals = Literal["auto", "on", "off"]
_DENORMAL: Final = 1e-39
"""Below the least normal float32, 1.2e-38."""
_GRAIN: Final = 1 << 15
"""Elements that torch gives one thread at least (`at::internal::GRAIN_SIZE`)."""


def set_flush_denormals(torch: Any, flush: FlushDenormals) -> None:
    """Have denormal numbers flushed, or not; `auto` leaves that as it is.

    The processor has a mode for it in each thread, which new ones take on from that which starts them. So this comes
    before torch starts its threads.

    Raises:
        EngineError: The CPU has no such mode.
    """
    if flush != "auto" and not torch.set_flush_denormal(flush == "on"):
        raise EngineError("this CPU cannot flush denormal numbers; leave flush_denormals at auto")


def flushed_denormals(torch: Any) -> str:
    """Return `on` or `off`, or how many of the products were flushed, by computing with all threads."""
    numbers = torch.full((torch.get_num_threads() * _GRAIN,), _DENORMAL)
    # A comparison with 0.0 would itself be made in the mode of its thread.
    flushed = int((numbers * 1.0).view(torch.int32).eq(0).sum())
    if flushed in {0, len(numbers)}:
        return "on" if flushed else "off"
    return f"{flushed} of {len(numbers)} products"
