"""Becomes a command, on the CPUs and the memory it was asked for.

`pinstripe.runtime.start` runs this file by path, with the parent's own interpreter (`-I -S`): it imports little, and
nothing that is not in the standard library, so that it starts in milliseconds and the command may belong to another
Python environment. Its one argument is the number of a socket. It reads a request from it (a line of JSON), applies it,
answers with what took effect (another line), waits for a line that lets it go on, and executes the command, by which
the socket closes. A step that fails is the last thing it answers.

Text is sent as bytes in Latin-1, so that arguments and variables arrive as they are, whatever the locale.
"""

import ctypes
import json
import os
import signal
import sys

__all__ = ["SYSTEM_CALLS"]

_PR_SET_PDEATHSIG, _PR_SET_THP_DISABLE, _PR_GET_THP_DISABLE = 1, 41, 42  # linux/prctl.h
_MASK_BITS = 1024  # the kernel's largest number of NUMA nodes (CONFIG_NODES_SHIFT is at most 10)
_WORD_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)
_ENOSYS = 38
_ZERO = ctypes.c_ulong(0)
# (set_mempolicy, get_mempolicy): arch/x86/entry/syscalls/syscall_64.tbl; uapi/asm-generic/unistd.h for the others.
SYSTEM_CALLS = {"x86_64": (238, 239), "aarch64": (237, 236), "riscv64": (237, 236), "loongarch64": (237, 236)}

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Read the request, apply it, and execute the command."""
    channel = int(sys.argv[1])
    os.set_inheritable(channel, False)  # noqa: FBT003  it takes no keyword
    with open(channel, "rb", closefd=False) as lines:
        request = json.loads(lines.readline())
        step = "start"
        try:
            _die_with(request["parent_pid"])
            _restore_signals()
            step = "affinity"
            cpus = _pin(request["cpus"])
            step = "huge_pages"
            _restrict_huge_pages(request["thp_disable_flags"])
            step = "memory"
            _send(channel, {"type": "report", "cpus": cpus, "policy": _apply_memory_policy(request["policy"])})
            if lines.readline():
                step = "exec"
                _execute(request["argv"], request["environment"])
        except (OSError, ValueError, OverflowError) as error:
            number, reason = (error.errno, error.strerror) if isinstance(error, OSError) else (None, str(error))
            _send(channel, {"type": "failure", "step": step, "reason": reason, "errno": number})


def _send(channel: int, message: dict[str, object]) -> None:
    os.write(channel, json.dumps(message).encode() + b"\n")


def _die_with(parent_pid: int) -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent_pid:  # it died before the line above
        os._exit(127)


def _restore_signals() -> None:
    # What Python ignores for itself, and what a thread of the parent blocked, would pass through exec to the command.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _execute(argv: list[str], environment: dict[str, str]) -> None:
    arguments = [text.encode("latin-1") for text in argv]
    variables = {name.encode("latin-1"): value.encode("latin-1") for name, value in environment.items()}
    os.execvpe(arguments[0], arguments, variables)  # noqa: S606  no shell is what is wanted


def _pin(cpus: list[int] | None) -> list[int]:
    if cpus is not None:
        os.sched_setaffinity(0, cpus)
    return sorted(os.sched_getaffinity(0))


def _restrict_huge_pages(flags: int | None) -> None:
    """Disable transparent huge pages, but for what the flags say; it is kept over exec."""
    if flags is None:
        return
    if _libc.prctl(_PR_SET_THP_DISABLE, ctypes.c_ulong(1), ctypes.c_ulong(flags), _ZERO, _ZERO) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    in_force = _libc.prctl(_PR_GET_THP_DISABLE, _ZERO, _ZERO, _ZERO, _ZERO)
    if in_force != 1 | flags:
        raise ValueError(f"the kernel reads back {in_force} instead of {1 | flags}")


def _apply_memory_policy(policy: tuple[int, list[int]] | None) -> dict[str, object]:
    """Set (mode, nodes), and read back what is in force; error numbers take the place of what was refused."""
    numbers = SYSTEM_CALLS.get(os.uname().machine)
    if numbers is None:
        return {"set_errno": policy and _ENOSYS, "get_errno": _ENOSYS}
    set_number, get_number = numbers
    set_errno = None
    if policy is not None:
        mode, nodes = policy
        set_errno = _call(set_number, ctypes.c_ulong(mode), _mask(nodes), ctypes.c_ulong(_MASK_BITS + 1))
    mode_now, mask = ctypes.c_int(), _mask([])
    get_errno = _call(get_number, ctypes.byref(mode_now), mask, ctypes.c_ulong(_MASK_BITS + 1), _ZERO, _ZERO)
    nodes_now = [bit for bit in range(_MASK_BITS) if mask[bit // _WORD_BITS] >> bit % _WORD_BITS & 1]
    return {"set_errno": set_errno, "get_errno": get_errno, "mode": mode_now.value, "nodes": nodes_now}


def _call(number: int, *arguments: object) -> int | None:
    return ctypes.get_errno() if _libc.syscall(ctypes.c_long(number), *arguments) < 0 else None


def _mask(nodes: list[int]) -> ctypes.Array[ctypes.c_ulong]:
    words = [0] * (_MASK_BITS // _WORD_BITS)
    for node in nodes:
        if not 0 <= node < _MASK_BITS:
            raise ValueError(f"no NUMA node has the number {node}")
        words[node // _WORD_BITS] |= 1 << node % _WORD_BITS
    return (ctypes.c_ulong * len(words))(*words)


if __name__ == "__main__":
    main()
