"""How many primitives the oneDNN inside torch keeps."""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any, Final

from pinstripe.engines.symbol_table import inner_function

__all__ = ["primitive_cache_capacity"]

_VARIABLE: Final = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_FUNCTION: Final = "dnnl_get_primitive_cache_capacity"


@cache
def primitive_cache_capacity(torch: Any) -> dict[str, str]:
    """Return the capacity that oneDNN says it has, as a setting of a report; empty where it cannot be asked.

    Torch's library does not export oneDNN's functions, and to find this one takes reading some 100 MB of it. So it is
    asked only where the variable is set, which is read by oneDNN when it makes its cache.
    """
    if _VARIABLE not in os.environ:
        return {}
    address = inner_function(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so", _FUNCTION)
    if address is None:
        return {}
    capacity = ctypes.c_int(-1)
    ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))(address)
    return {} if ask(ctypes.byref(capacity)) else {"primitive_cache_capacity": str(capacity.value)}
