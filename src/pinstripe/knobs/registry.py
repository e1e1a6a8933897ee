"""Knobs by name."""

import difflib
from typing import Final

from pinstripe.engines import Engine
from pinstripe.errors import KnobError
from pinstripe.knobs.allocator import Allocator
from pinstripe.knobs.flush_denormals import FlushDenormals
from pinstripe.knobs.fpmath import Fpmath
from pinstripe.knobs.gemm import Gemm
from pinstripe.knobs.hugepages import HugePagesKnob
from pinstripe.knobs.interop_threads import InteropThreads
from pinstripe.knobs.isa import Isa
from pinstripe.knobs.knob import Knob
from pinstripe.knobs.memory_policy import MemoryPolicyKnob
from pinstripe.knobs.openmp import Openmp
from pinstripe.knobs.primitive_cache import PrimitiveCache
from pinstripe.knobs.smt import Smt
from pinstripe.knobs.spin import Spin

__all__ = ["OF_PLACEMENT", "knob", "knob_names", "knobs", "knobs_of"]

_KNOBS: Final[tuple[Knob, ...]] = (
    Smt(),
    MemoryPolicyKnob(),
    Allocator(),
    Openmp(),
    Spin(),
    HugePagesKnob(),
    Isa(),
    Fpmath(),
    Gemm(),
    PrimitiveCache(),
    FlushDenormals(),
    InteropThreads(),
)
_BY_NAME: Final = {one.name: one for one in _KNOBS}
OF_PLACEMENT: Final = ("smt", "memory_policy")
"""Knobs that are fields of a configuration, because placement or the start itself answers them."""


def knob_names() -> tuple[str, ...]:
    """Return the names of all knobs."""
    return tuple(_BY_NAME)


def knobs() -> tuple[Knob, ...]:
    """Return all knobs, in the order in which they are shown."""
    return _KNOBS


def knobs_of(engine: Engine) -> tuple[Knob, ...]:
    """Return the knobs that concern an engine."""
    return tuple(one for one in _KNOBS if one.stranger(engine) is None)


def knob(name: str) -> Knob:
    """Return the knob of that name.

    Raises:
        KnobError: There is none; the message lists those that there are.
    """
    if name not in _BY_NAME:
        near = difflib.get_close_matches(name, _BY_NAME, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(_BY_NAME)}"
        raise KnobError(f"no knob is named {name!r}; {hint}")
    return _BY_NAME[name]
