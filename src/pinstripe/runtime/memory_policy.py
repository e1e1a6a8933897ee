"""Which memory policy a process asks for, and which one it got.

Modes and system calls: `man 2 set_mempolicy`, and linux/mempolicy.h.
"""

import errno
import os
from pathlib import Path
from typing import Literal

import msgspec

from pinstripe.errors import StartError
from pinstripe.machine import format_cpu_list, parse_cpu_list
from pinstripe.runtime.procfs import read_status

__all__ = [
    "MemoryPolicy",
    "MemoryPolicyEffect",
    "PolicyCall",
    "PolicyOutcome",
    "expect",
    "judge",
    "nodes_with_memory",
    "resolve",
]

MemoryPolicy = Literal["auto", "preferred", "bind", "interleave", "local", "none"]

_PREFERRED, _PREFERRED_MANY = 1, 5
_MODES = {"preferred": _PREFERRED, "bind": 2, "interleave": 3, "local": 4}
_MODE_NAMES = {
    0: "none",
    _PREFERRED: "preferred",
    2: "bind",
    3: "interleave",
    4: "local",
    _PREFERRED_MANY: "preferred",
    6: "weighted-interleave",
}
_MODE_FLAGS = 0b111 << 13  # MPOL_F_STATIC_NODES, MPOL_F_RELATIVE_NODES, MPOL_F_NUMA_BALANCING
_FILTERED = (errno.EPERM, errno.ENOSYS)  # a container's system-call filter, or a kernel without NUMA


class MemoryPolicyEffect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The memory policy of a process when it started.

    Attributes:
        requested: What was asked for.
        effective: What is in force: `preferred`, `bind`, `interleave`, `local`, `weighted-interleave` (only ever
            inherited), or `none`: each page lies on the node of the thread that touches it first.
        nodes: Ids of the NUMA nodes it holds for, ascending; empty for `local` and `none`.
        why: How the one came from the other, for people.
    """

    requested: MemoryPolicy
    effective: str
    nodes: tuple[int, ...]
    why: str


class PolicyCall(msgspec.Struct, frozen=True, array_like=True):
    """Arguments of set_mempolicy."""

    mode: int
    nodes: tuple[int, ...]


class PolicyOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel answered.

    Attributes:
        set_errno: Error number of set_mempolicy; None when it succeeded or was not called.
        get_errno: Error number of get_mempolicy; None when it succeeded.
        mode: Mode in force, with flags; meaningless after an error.
        nodes: Nodes in force.
    """

    set_errno: int | None
    get_errno: int | None
    mode: int = 0
    nodes: tuple[int, ...] = ()


def nodes_with_memory(root: Path = Path("/")) -> tuple[int, ...]:
    """Return the ids of the NUMA nodes that have memory; empty on a kernel without NUMA."""
    try:
        return parse_cpu_list((root / "sys/devices/system/node/has_memory").read_text())
    except FileNotFoundError:
        return ()


def resolve(
    requested: MemoryPolicy, nodes: tuple[int, ...], machine_nodes: tuple[int, ...]
) -> tuple[PolicyCall | None, str]:
    """Decide which system call a request stands for.

    Args:
        requested: The policy asked for.
        nodes: The nodes it should hold for.
        machine_nodes: The machine's nodes that have memory.

    Returns:
        The call, None for none at all; and the reason.

    Raises:
        StartError: The policy needs nodes and none is given.
    """
    if requested == "none":
        return None, "no policy was asked for: first touch"
    if requested == "auto":
        return _resolve_auto(nodes, machine_nodes)
    if requested == "local":
        return PolicyCall(_MODES["local"], ()), "as requested"
    if not nodes:
        raise StartError(
            f"memory policy {requested} needs the NUMA nodes it should hold for and none is given; use auto or none"
        )
    many = requested == "preferred" and len(nodes) > 1  # of several, MPOL_PREFERRED would take only the first
    return PolicyCall(_PREFERRED_MANY if many else _MODES[requested], tuple(sorted(set(nodes)))), "as requested"


def _resolve_auto(nodes: tuple[int, ...], machine_nodes: tuple[int, ...]) -> tuple[PolicyCall | None, str]:
    if len(machine_nodes) <= 1:
        return None, "one node: first touch"
    if not nodes:
        return None, "no node is given: first touch"
    if len(nodes) == 1:
        return PolicyCall(_PREFERRED, nodes), f"its node, of {len(machine_nodes)}"
    return PolicyCall(_MODES["interleave"], tuple(sorted(set(nodes)))), f"it spans {len(nodes)} nodes"


def expect(requested: MemoryPolicy, nodes: tuple[int, ...]) -> MemoryPolicyEffect:
    """Return what a process that is started on this machine should get, if the kernel grants it.

    Raises:
        StartError: The policy needs nodes and none is given.
    """
    call, why = resolve(requested, nodes, nodes_with_memory())
    return _effect(requested, (_name(call), call.nodes) if call else ("none", ()), why)


def judge(requested: MemoryPolicy, call: PolicyCall | None, why: str, outcome: PolicyOutcome) -> MemoryPolicyEffect:
    """Compare what was asked for with what the kernel answered.

    Args:
        requested: The policy asked for.
        call: The call that was made, None for none.
        why: The reason for it, as `resolve` gave it.
        outcome: The kernel's answer.

    Returns:
        The policy in force.

    Raises:
        StartError: A policy that must take effect did not. `auto` need not where system calls are filtered.
    """
    if call and outcome.set_errno is not None:
        reason = os.strerror(outcome.set_errno)
        if requested != "auto" or outcome.set_errno not in _FILTERED:
            raise _refusal(requested, call.nodes, reason)
        call, why = None, f"set_mempolicy is refused here ({reason}): first touch"
    asked = (_name(call), call.nodes) if call else ("none", ())
    if outcome.get_errno is not None:
        return _effect(requested, asked, f"{why}; not read back: get_mempolicy says {os.strerror(outcome.get_errno)}")
    in_force = (_name(PolicyCall(outcome.mode, outcome.nodes)), outcome.nodes)
    if in_force == asked:
        return _effect(requested, asked, why)
    if not call:
        return _effect(requested, in_force, f"{why}; but a policy is inherited from the parent")
    got = f"the kernel made it {in_force[0]} {format_cpu_list(in_force[1])}"
    if requested != "auto":
        raise _refusal(requested, call.nodes, got)
    return _effect(requested, in_force, f"{why}; {got}")


def _effect(requested: MemoryPolicy, in_force: tuple[str, tuple[int, ...]], why: str) -> MemoryPolicyEffect:
    return MemoryPolicyEffect(requested=requested, effective=in_force[0], nodes=in_force[1], why=why)


def _refusal(requested: MemoryPolicy, nodes: tuple[int, ...], reason: str) -> StartError:
    allowed = parse_cpu_list(read_status(Path("/proc/self/status")).get("Mems_allowed_list", ""))
    usable = format_cpu_list(sorted(set(nodes_with_memory()) & set(allowed))) or "none"
    return StartError(
        f"memory policy {requested} on nodes {format_cpu_list(nodes) or 'none'} could not take effect ({reason}); "
        f"nodes with memory that this process may use: {usable}; name some of those, or use none"
    )


def _name(call: PolicyCall) -> str:
    mode = call.mode & ~_MODE_FLAGS
    if mode == _PREFERRED and not call.nodes:
        return "local"  # how kernels before 5.14 report MPOL_LOCAL
    return _MODE_NAMES.get(mode, f"mode {mode}")
