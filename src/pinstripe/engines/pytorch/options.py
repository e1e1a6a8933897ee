"""Options that all engines on PyTorch have, and the library set up with them."""

from typing import Any

import msgspec

from pinstripe.engines.importing import import_library
from pinstripe.engines.protocol import LoadRequest
from pinstripe.engines.pytorch.denormals import FlushDenormals, set_flush_denormals
from pinstripe.engines.pytorch.float32 import Fpmath, set_fpmath
from pinstripe.engines.pytorch.threads import set_threads
from pinstripe.errors import EngineError

__all__ = ["TorchOptions", "start_torch"]


class TorchOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the engines on PyTorch. They hold for the process.

    Attributes:
        flush_denormals: Whether compute threads take denormal numbers for zero; `auto` leaves that to torch, which does
            not.
        interop_threads: Threads for whole operators beside each other (`torch.set_num_interop_threads`); None for one.
    """

    flush_denormals: FlushDenormals = "auto"
    interop_threads: int | None = None


def start_torch(request: LoadRequest, options: TorchOptions, fpmath: Fpmath = "strict") -> Any:
    """Import torch, and set what holds for the process.

    Raises:
        EngineError: Torch is missing, or cannot be set up so in this process.
    """
    if fpmath != "strict" and request.precision != "float32":
        raise EngineError(f"fpmath={fpmath} is for float32, not {request.precision}; leave it at strict")
    torch = import_library("torch", extra="torch")
    set_flush_denormals(torch, options.flush_denormals)  # before the first threads start
    set_fpmath(torch, fpmath)
    set_threads(torch, request.threads, options.interop_threads)
    return torch
