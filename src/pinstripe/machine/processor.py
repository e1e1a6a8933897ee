"""The processor's name, its instruction sets, and the kernel's modes for it."""

import re

from pinstripe.machine.limits import CPU_DIRECTORY
from pinstripe.machine.tree import Tree

__all__ = ["name_and_flags", "smt_state", "thp_mode"]

# Entries are alike, and reading all of a large live machine is slow. Old Arm kernels put the features after all CPUs.
_CPUINFO_BYTES = 1 << 16


def name_and_flags(tree: Tree) -> tuple[str | None, tuple[str, ...]]:
    """Return the processor's name (None where unknown) and its instruction-set flags, sorted.

    The name is x86's `model name`, POWER's `cpu` or old Arm's `Processor`; newer Arm kernels give none. The flags are
    x86's `flags`, Arm's `Features` or s390's `features`.
    """
    content = tree.text("proc/cpuinfo", limit_bytes=_CPUINFO_BYTES) or ""
    flags = _first_value(content, "flags", "Features", "features") or ""
    return _first_value(content, "model name", "cpu", "Processor"), tuple(sorted(set(flags.split())))


def thp_mode(tree: Tree) -> str | None:
    """Return the selected mode of transparent huge pages, the word that the kernel puts in brackets."""
    match = re.search(r"\[(\w+)\]", tree.text("sys/kernel/mm/transparent_hugepage/enabled") or "")
    return match[1] if match else None


def smt_state(tree: Tree) -> str | None:
    """Return the kernel's SMT state; on POWER it may be a number of threads, which is `on`."""
    state = (tree.text(f"{CPU_DIRECTORY}/smt/control") or "").strip("\0 \n")
    if state.isascii() and state.isdigit():
        return "on"
    return state if state in {"on", "off", "forceoff", "notsupported", "notimplemented"} else None


def _first_value(content: str, *keys: str) -> str | None:
    found = (re.search(rf"^{key}[ \t]*:[ \t]*(\S.*?)[\0\s]*$", content, re.MULTILINE) for key in keys)
    return next((match[1] for match in found if match), None)
