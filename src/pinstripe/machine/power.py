"""How fast the kernel lets the CPUs run: governor, energy preference, boost, and caps on the clock."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from pinstripe.machine.limits import CPU_DIRECTORY, allowed_cpus, online_cpus
from pinstripe.machine.tree import Tree

__all__ = ["Power", "read_power"]


class Power(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The kernel's frequency scaling of the allowed CPUs (`Documentation/admin-guide/pm/cpufreq.rst`).

    All is empty or None where the kernel does not scale, as in most virtual machines.

    Attributes:
        drivers: Scaling drivers, sorted: `intel_pstate` and `amd-pstate-epp` choose the clock in hardware, all others
            (`acpi-cpufreq`, `intel_cpufreq`, `amd-pstate`, `cppc_cpufreq`, ...) do what the governor says.
        governors: Governors, sorted.
        preferences: Energy-performance preferences, sorted; empty where the driver has none.
        boost: Whether clocks above the base frequency are allowed; None where the kernel does not say.
        cap: The lowest share, in (0, 1], of its highest frequency that an allowed CPU may reach; None where unknown.
        capped: The allowed CPUs that may reach no more than that, ascending; empty where it is unknown.
    """

    drivers: tuple[str, ...] = ()
    governors: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    boost: bool | None = None
    cap: float | None = None
    capped: tuple[int, ...] = ()


def read_power(root: Path = Path("/")) -> Power:
    """Return how the allowed CPUs' clocks are governed.

    Args:
        root: As for `read_machine`.

    Raises:
        MachineError: As for `read_machine`.
    """
    tree = Tree(root)
    policies = _policies(tree, frozenset(allowed_cpus(tree, online_cpus(tree))))
    shares = {policy: share for policy in policies if (share := _share(tree, policy)) is not None}
    cap = min(shares.values(), default=None)
    return Power(
        drivers=_words(tree, policies, "scaling_driver"),
        governors=_words(tree, policies, "scaling_governor"),
        preferences=_words(tree, policies, "energy_performance_preference"),
        boost=_boost(tree),
        cap=cap,
        capped=tuple(sorted(cpu for policy, share in shares.items() if share == cap for cpu in policies[policy])),
    )


def _policies(tree: Tree, cpus: frozenset[int]) -> dict[str, frozenset[int]]:
    """Return the directories of the policies that govern any of the CPUs, and which.

    Old kernels have one in each CPU's own.
    """
    numbers = tree.numbered(f"{CPU_DIRECTORY}/cpufreq", "policy")
    shared = {f"{CPU_DIRECTORY}/cpufreq/policy{number}": number for number in numbers}
    if not shared:
        return {f"{CPU_DIRECTORY}/cpu{cpu}/cpufreq": frozenset({cpu}) for cpu in sorted(cpus)}
    governed = {policy: cpus & (_governed(tree, policy) or {number}) for policy, number in shared.items()}
    return {policy: ours for policy, ours in governed.items() if ours}


def _governed(tree: Tree, policy: str) -> set[int]:
    words = (tree.text(f"{policy}/affected_cpus") or "").strip("\0 \n").split()
    return {int(word) for word in words if word.isascii() and word.isdigit()}


def _words(tree: Tree, policies: Iterable[str], name: str) -> tuple[str, ...]:
    contents = {(tree.text(f"{policy}/{name}") or "").strip("\0 \n") for policy in policies}
    return tuple(sorted(contents - {""}))


def _boost(tree: Tree) -> bool | None:
    no_turbo = tree.number(f"{CPU_DIRECTORY}/intel_pstate/no_turbo")
    boost = tree.number(f"{CPU_DIRECTORY}/cpufreq/boost")
    if no_turbo is not None:
        return no_turbo == 0
    return None if boost is None else boost != 0


def _share(tree: Tree, policy: str) -> float | None:
    """Return which share of its highest frequency a policy allows."""
    limit, highest = tree.number(f"{policy}/scaling_max_freq"), tree.number(f"{policy}/cpuinfo_max_freq")
    return min(1.0, limit / highest) if limit and highest else None
