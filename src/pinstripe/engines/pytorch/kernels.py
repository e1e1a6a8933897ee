"""Which libraries torch calls, and which instructions they use, in the libraries' own words."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from pinstripe.engines.instruction_sets import said_isa
from pinstripe.engines.overhearing import overheard

__all__ = ["instruction_sets", "multiplying_library"]

_MKL_LIMIT: Final = "MKL_ENABLE_INSTRUCTIONS"
_SIZE: Final = 64
"""Rows and columns of the matrices of the probe."""


@cache
def instruction_sets(torch: Any) -> dict[str, str]:
    """Return instructions that kernels are limited to, as settings of a report; they are fixed for the process.

    `cpu_capability` are those of torch's own kernels; `onednn_isa` and `mkl_isa` of these libraries, where torch has
    them. MKL is asked only where it has been limited: it takes up to a second to measure the clock first.
    """
    found = {"cpu_capability": str(torch.backends.cpu.get_cpu_capability())}
    matrix = torch.ones(_SIZE, _SIZE)
    if torch.backends.mkldnn.is_available():
        # The only operator that asks oneDNN to create something whatever the CPU and the precision.
        found["onednn_isa"] = said_isa(_onednn(torch, lambda: torch.ops.mkldnn._reorder_linear_weight(matrix)))  # noqa: SLF001 - see linear.py
    if _MKL_LIMIT in os.environ and torch.backends.mkl.is_available():
        found["mkl_isa"] = said_isa(_mkl(torch, lambda: matrix @ matrix))
    return found


def multiplying_library(torch: Any, linear: Any) -> str:
    """Return what multiplies a linear layer's inputs with its weights: `onednn`, `mkl`, or `torch` for neither.

    Args:
        torch: The library.
        linear: The layer, in float32 or bfloat16, with its number of inputs as `in_features`.
    """
    instruction_sets(torch)  # which are said only once, and would go unheard afterwards
    dtype = next(iter((*linear.parameters(), *linear.buffers()))).dtype

    def call() -> None:
        with torch.inference_mode():
            linear(torch.ones(_SIZE, linear.in_features, dtype=dtype))

    if torch.backends.mkldnn.is_available() and any(",exec,cpu," in line for line in _onednn(torch, call)):
        return "onednn"
    if torch.backends.mkl.is_available() and any("GEMM(" in line for line in _mkl(torch, call)):
        return "mkl"
    return "torch"


def _onednn(torch: Any, call: Callable[[], object]) -> list[str]:
    verbose = torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON_CREATION)
    return _heard(verbose, call)


def _mkl(torch: Any, call: Callable[[], object]) -> list[str]:
    return _heard(torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON), call)


def _heard(verbose: Any, call: Callable[[], object]) -> list[str]:
    def called() -> None:
        with verbose:
            call()

    return overheard(called)
