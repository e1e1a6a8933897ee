"""Which cores may instances use, and which are kept free?"""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from pinstripe.errors import PlacementError
from pinstripe.machine import Core, Machine, format_cpu_list
from pinstripe.placement.groups import group_by_node
from pinstripe.placement.wish import Wish

__all__ = ["allowed_cores", "cut_to", "first_threads", "reserve_cores", "schedulable_cores", "wished_cores"]


def allowed_cores(machine: Machine) -> tuple[Core, ...]:
    """List the cores this process may use, cut down to their allowed CPUs.

    Raises:
        PlacementError: There is none.
    """
    cores = cut_to(machine.cores, machine.allowed)
    if not cores:
        raise PlacementError(
            f"no CPU may be used: none of the online ones ({format_cpu_list(machine.online)}) is in both the affinity "
            "mask and the cpuset of this process; widen these"
        )
    return cores


def schedulable_cores(machine: Machine, allowed: tuple[Core, ...]) -> tuple[Core, ...]:
    """List those of the allowed cores that have CPUs the kernel balances load over, cut down to these.

    Raises:
        PlacementError: All allowed CPUs are isolated.
    """
    cores = cut_to(allowed, set(machine.allowed) - set(machine.isolated))
    if not cores:
        cpus = format_cpu_list(machine.allowed)
        raise PlacementError(
            f"all allowed CPUs ({cpus}) are isolated from the scheduler; name them to use them: --bind {cpus}"
        )
    return cores


def wished_cores(cores: tuple[Core, ...], wish: Wish) -> tuple[Core, ...]:
    """Select the cores of the wished kind.

    Raises:
        PlacementError: There is none of that kind.
    """
    wished = tuple(core for core in cores if wish.core_kind in {"all", core.kind})
    if not wished:
        other = cores[0].kind
        raise PlacementError(
            f"{wish.core_kind} cores were asked for, but all {len(cores)} cores that this process may use are {other} "
            f"cores; ask for --core-kind {other} or all"
        )
    return wished


def reserve_cores(cores: Iterable[Core], wished: Iterable[Core], count: int) -> tuple[Core, ...]:
    """Choose cores to keep free where they are missed least.

    Cores that are not wished go first, the highest numbers before others; then the last core of whichever node has
    most wished cores left (of equal ones the last), so that instances can stay equal.

    Args:
        cores: All cores to choose from.
        wished: Those of them that instances could use.
        count: How many to keep free, at least 0.

    Returns:
        The cores kept free, by first CPU.

    Raises:
        PlacementError: No wished core would be left.
    """
    left = list(wished)
    others = [core for core in cores if core not in left]
    most = len(others) + len(left) - 1
    if count > most:
        raise PlacementError(
            f"{count} cores to reserve, but this process may use {most + 1} cores and an instance needs at least one: "
            f"reserve at most {most}"
        )
    reserved = others[::-1][:count]
    while len(reserved) < count:
        groups = group_by_node(left)
        largest = max(reversed(groups), key=lambda group: group.size)
        last = max((core for part in largest.parts for core in part), key=lambda core: core.cpus)
        left.remove(last)
        reserved.append(last)
    return tuple(sorted(reserved, key=lambda core: core.cpus))


def first_threads(cores: Iterable[Core]) -> tuple[Core, ...]:
    """Cut cores down to the first CPU of each."""
    return tuple(replace(core, cpus=core.cpus[:1]) for core in cores)


def cut_to(cores: Iterable[Core], cpus: Collection[int]) -> tuple[Core, ...]:
    """Cut cores down to the given CPUs; cores without any of them are left out."""
    wanted = set(cpus)
    cut = (replace(core, cpus=tuple(cpu for cpu in core.cpus if cpu in wanted)) for core in cores)
    return tuple(core for core in cut if core.cpus)
