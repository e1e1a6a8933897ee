"""Which instructions a library limits its kernels to: by the variables that say so, and in its own words."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pinstripe.engines.overhearing import overheard

__all__ = ["HEADER_ONLY", "isa_limits", "keeps_from_bfloat16", "onednn_isa", "said_isa"]

_LIMITS: Final = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "TORCHINDUCTOR_CPP_MARCH",
)
_ISA: Final = re.compile(
    r"(?:info,cpu,isa:|^MKL_VERBOSE oneMKL.*? for (?:Intel\(R\) 64 architecture )?)(.+?)"
    r"(?: enabled processors)?(?:, Lnx.*)?$"
)
_WITHOUT_BFLOAT16: Final = frozenset({"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI"})
"""Values of `ONEDNN_MAX_CPU_ISA`."""
HEADER_ONLY: Final = "profile_create,filter=lrn"
"""Value of `ONEDNN_VERBOSE` that has oneDNN introduce itself, and say no more: no encoder has a layer of that kind."""


def isa_limits(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that limit instructions, of those that are set; what was compiled depends on them."""
    return {name: environment[name] for name in _LIMITS if environment.get(name)}


def keeps_from_bfloat16(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the variable, with its value, that keeps oneDNN from products of bfloat16; None if there is none."""
    for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):  # the first one that is set counts
        if value := environment.get(name):
            return f"{name}={value}" if value.upper() in _WITHOUT_BFLOAT16 else None
    return None


def said_isa(lines: Iterable[str]) -> str:
    """Return the instructions that oneDNN or MKL names as it introduces itself; empty if it does not.

    oneDNN says `onednn_verbose,v1,info,cpu,isa:Intel AVX2`, and MKL `MKL_VERBOSE oneMKL … for Intel(R) 64 architecture
    Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2) enabled processors, Lnx …`, each once in a process.
    """
    return next((found[1] for line in lines if (found := _ISA.search(line))), "")


def onednn_isa(call: Callable[[], object]) -> dict[str, str]:
    """Return what oneDNN says of its instructions, as a setting of a report, if `ONEDNN_VERBOSE` has it say that.

    Args:
        call: Has the library use oneDNN, for the first time in this process.
    """
    said = said_isa(overheard(call)) if os.environ.get("ONEDNN_VERBOSE") == HEADER_ONLY else ""
    return {"onednn_isa": said} if said else {}
