"""Whether memory policies can be set here at all."""

import ctypes
import os

from pinstripe.runtime.trampoline import SYSTEM_CALLS

__all__ = ["memory_policy_error"]


def memory_policy_error() -> str | None:
    """Return why the kernel, or a filter of system calls, lets nobody here set a memory policy; None if it does.

    Sets the policy of this thread to what it is: a thread whose policy is not the default one got it by that call.
    """
    numbers = SYSTEM_CALLS.get(os.uname().machine)
    if numbers is None:
        return None
    set_mempolicy, get_mempolicy = numbers
    libc = ctypes.CDLL(None, use_errno=True)
    mode = ctypes.c_int()
    zero = ctypes.c_ulong(0)
    if libc.syscall(get_mempolicy, ctypes.byref(mode), None, zero, None, zero) != 0:
        return os.strerror(ctypes.get_errno())
    if mode.value == 0 and libc.syscall(set_mempolicy, ctypes.c_int(0), None, zero) != 0:
        return os.strerror(ctypes.get_errno())
    return None
