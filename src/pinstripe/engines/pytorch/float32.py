"""In which precision torch multiplies what is float32: its own, or bfloat16 by oneDNN's floating-point math mode."""

import os
from typing import Any, Final, Literal

from pinstripe.errors import EngineError

__all__ = ["Fpmath", "set_fpmath"]

Fpmath = Literal["strict", "bf16"]
"""Products of float32 matrices: in float32, or rounded to bfloat16 and summed in float32 (oneDNN's `fpmath_mode`)."""

# oneDNN computes float32 in a lower precision when told so from outside (its documentation, "Primitive Attributes:
# floating-point math mode").
_MATH_MODE_VARIABLES: Final = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
_MATMUL_VARIABLE: Final = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"  # which images for GPUs set
_MATMUL_PRECISIONS: Final[dict[Fpmath, str]] = {"strict": "highest", "bf16": "medium"}
"""Names of `torch.set_float32_matmul_precision`."""
_PROBE: Final = 64
"""Rows and columns of the matrices of the probe: for a few rows oneDNN keeps to float32 (seen with up to 16)."""


def set_fpmath(torch: Any, fpmath: Fpmath = "strict") -> None:
    """See to it that products of float32 matrices are computed so, in all of this process.

    Raises:
        EngineError: The environment or the process has chosen a lower precision, or the CPU has no products of bfloat16
            that oneDNN would use for float32 (it needs more than `avx512_bf16`).
    """
    for variable in _MATH_MODE_VARIABLES:
        if os.environ.get(variable, "STRICT").upper() != "STRICT":
            raise EngineError(f"{variable}={os.environ[variable]} computes float32 in less; unset it")
    precision, wanted = torch.get_float32_matmul_precision(), _MATMUL_PRECISIONS[fpmath]
    if precision not in {"highest", wanted}:
        message = f"torch multiplies float32 in {precision} precision"
        raise EngineError(f"{message}; unset {_MATMUL_VARIABLE}, or set_float32_matmul_precision('highest')")
    torch.set_float32_matmul_precision(wanted)
    if fpmath == "bf16" and not _rounds_to_bfloat16(torch):
        torch.set_float32_matmul_precision("highest")
        raise EngineError(
            "fpmath=bf16 has no effect, oneDNN multiplies float32 as it is on this CPU; use fpmath=strict"
        )


def _rounds_to_bfloat16(torch: Any) -> bool:
    """Multiply a number that bfloat16 cannot hold, and see whether it is rounded."""
    number = 1 + 2**-12
    matrix = torch.full((_PROBE, _PROBE), number)
    product = torch.nn.functional.linear(matrix, torch.ones(_PROBE, _PROBE))
    return bool((product == _PROBE).all())
