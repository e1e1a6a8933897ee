"""Which transparent huge pages a process may have: `man 2 PR_SET_THP_DISABLE`, and linux/prctl.h."""

import ctypes
from typing import Final, Literal

__all__ = ["DISABLE_FLAGS", "HugePages", "explain_refused_huge_pages", "inherited_huge_pages"]

HugePages = Literal["inherit", "never", "advised"]
"""Transparent huge pages of a process: as its parent has them; none; or only for memory that asks for them."""

DISABLE_FLAGS: Final[dict[HugePages, int | None]] = {"inherit": None, "never": 0, "advised": 2}
"""Second argument of PR_SET_THP_DISABLE, None for no call; 2 is PR_THP_DISABLE_EXCEPT_ADVISED, from Linux 6.18 on."""
_PR_GET_THP_DISABLE: Final = 42
_STATES: Final[dict[int, HugePages]] = {1: "never", 3: "advised"}


def inherited_huge_pages() -> HugePages:
    """Return what this process, and so what it starts, was restricted to; `inherit` where nothing restricts it."""
    zero = ctypes.c_ulong(0)
    state = ctypes.CDLL(None).prctl(_PR_GET_THP_DISABLE, zero, zero, zero, zero)
    return _STATES.get(state, "inherit")


def explain_refused_huge_pages(wanted: HugePages, reason: str) -> str:
    """Return what to do when the kernel did not restrict a process.

    Args:
        wanted: What was asked for.
        reason: What the kernel said.
    """
    if wanted == "advised":
        return f"huge pages only where advised are refused ({reason}); they need Linux 6.18, so choose never or inherit"
    return f"doing without huge pages is refused ({reason}); a filter of system calls may forbid it, so choose inherit"
