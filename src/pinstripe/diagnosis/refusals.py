"""Which values of knobs cannot be had on this machine."""

import ctypes
import os
import platform
from collections.abc import Sequence
from typing import Final

from pinstripe.engines import engine
from pinstripe.knobs import Context, knobs, read_host
from pinstripe.machine import Machine

__all__ = ["Refusals", "read_refusals"]

Refusals = dict[str, dict[str, str]]
"""By knob: its values that cannot be had, and why."""

_SYSTEM_CALLS: Final = {"x86_64": (238, 239), "aarch64": (237, 236), "riscv64": (237, 236), "loongarch64": (237, 236)}
"""(set_mempolicy, get_mempolicy): arch/x86/entry/syscalls/syscall_64.tbl; uapi/asm-generic/unistd.h for the others."""


def read_refusals(machine: Machine, engines: Sequence[str]) -> Refusals:
    """Ask every knob that concerns one of some engines for each of its values.

    Args:
        machine: The machine that this runs on.
        engines: Names of engines that are installed.
    """
    context = Context(host=read_host(machine))
    used = [engine(name) for name in engines]
    refusals: Refusals = {
        one.name: {value: why for value in one.values() if (why := one.refusal(value, context)) is not None}
        for one in knobs()
        if any(one.stranger(each) is None for each in used)
    }
    if used and (error := memory_policy_error()) is not None:
        why = f"set_mempolicy: {error}; `docker run --cap-add SYS_NICE`"
        refusals["memory_policy"] = dict.fromkeys(("preferred", "bind", "interleave", "local"), why)
    return refusals


def memory_policy_error() -> str | None:
    """Return why the kernel, or a filter of system calls, lets nobody here set a memory policy; None if it does.

    Sets the policy of this thread to what it is: a thread whose policy is not the default one got it by that call.
    """
    if platform.machine() not in _SYSTEM_CALLS:
        return None
    set_mempolicy, get_mempolicy = _SYSTEM_CALLS[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    mode = ctypes.c_int()
    zero = ctypes.c_ulong(0)
    if libc.syscall(get_mempolicy, ctypes.byref(mode), None, zero, None, zero) != 0:
        return os.strerror(ctypes.get_errno())
    if mode.value == 0 and libc.syscall(set_mempolicy, ctypes.c_int(0), None, zero) != 0:
        return os.strerror(ctypes.get_errno())
    return None
