"""Whether an engine and this CPU can compute in a precision."""

from collections.abc import Collection
from typing import Final

from pinstripe.engines.protocol import Engine, Precision
from pinstripe.errors import EngineError
from pinstripe.machine import read_isa

__all__ = ["check_precision", "has_bfloat16"]

_BFLOAT16: Final = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Flags of a CPU that multiplies matrices of bfloat16: x86's two as the kernel names them (its cpufeatures.h), and
Arm's (its elf_hwcaps.rst). `avx_ne_convert` only converts."""


def has_bfloat16(isa: Collection[str]) -> bool:
    """Return whether a CPU with these flags (`Machine.isa`) has instructions for products of bfloat16."""
    return not _BFLOAT16.isdisjoint(isa)


def check_precision(engine: Engine, precision: Precision, isa: Collection[str] | None = None) -> None:
    """Raise if an engine cannot compute in a precision, here.

    Args:
        engine: The engine.
        precision: What is asked for.
        isa: Flags of the CPU; None for this machine's.

    Raises:
        EngineError: The engine has no such precision, or the CPU no instructions for it.
    """
    if precision not in engine.precisions:
        others = ", ".join(engine.precisions)
        raise EngineError(f"engine {engine.name} does not compute in {precision}; choose one of {others}")
    if precision == "bfloat16" and not has_bfloat16(read_isa() if isa is None else isa):
        raise EngineError(
            "this CPU has no instructions for bfloat16 (avx512_bf16, amx_bf16, or Arm's bf16); choose float32 or int8"
        )
