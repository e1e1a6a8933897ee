"""From a machine and a wish to a placement."""

from collections.abc import Iterable

from pinstripe.errors import PlacementError
from pinstripe.machine import Core, Machine
from pinstripe.placement.bind import bound_layout, describe_shared_cores
from pinstripe.placement.cores import allowed_cores, first_threads, reserve_cores, schedulable_cores, wished_cores
from pinstripe.placement.layout import Layout
from pinstripe.placement.memory import describe_crossings, describe_detours, memory_nodes
from pinstripe.placement.quota import check_threads
from pinstripe.placement.unbound import unbound_layout
from pinstripe.placement.wish import InstancePlacement, Placement, Wish

__all__ = ["place"]


def place(machine: Machine, wish: Wish) -> Placement:
    """Decide where instances run. Pure and deterministic.

    In this order: no instance crosses nodes unless it must, all instances have the same number of cores (but with
    `Wish.sizes`), all cores are used. An instance must cross nodes where `wish` says how many cores it has and no node
    has as many left, and where a single instance is to have all cores (see `Wish.instances`); then the fewest nodes are
    chosen, and the nearest of these. There are never more threads than the CPU quota rounded down, or one.

    Raises:
        PlacementError: The wish makes no sense or cannot be met; the message says what can be had.
    """
    _check_numbers(wish)
    allowed = allowed_cores(machine)
    if wish.bind is not None:
        layout = bound_layout(machine, wish.bind, wish)
        check_threads(machine, layout)
        return _placement(machine, allowed, layout, reserved=(), warnings=describe_shared_cores(machine, layout))
    schedulable = schedulable_cores(machine, allowed)
    wished = wished_cores(schedulable, wish)
    reserved = reserve_cores(schedulable, wished, wish.reserve)
    usable = tuple(core for core in wished if core not in reserved)
    layout, warnings = unbound_layout(machine, usable if wish.smt == "all" else first_threads(usable), wish)
    return _placement(machine, allowed, layout, reserved=reserved, warnings=warnings)


def _check_numbers(wish: Wish) -> None:
    numbers = (("--instances", wish.instances, 1), ("--cores", wish.cores, 1), ("--reserve", wish.reserve, 0))
    for option, value, least in numbers:
        if value is not None and value < least:
            raise PlacementError(f"{option} is {value}, but has to be at least {least}")
    if wish.sizes and (wish.instances or wish.cores or wish.bind):
        raise PlacementError("the cores of each instance are named; leave out --instances, --cores and --bind")
    if wish.sizes and min(wish.sizes) < 1:
        raise PlacementError(f"an instance of {min(wish.sizes)} cores was asked for; each needs at least 1")


def _placement(
    machine: Machine, allowed: tuple[Core, ...], layout: Layout, *, reserved: tuple[Core, ...], warnings: list[str]
) -> Placement:
    """Complete a layout by its memory nodes and by what is left of the allowed cores."""
    instances = tuple(InstancePlacement(cpus=_cpus(cores), nodes=memory_nodes(machine, cores)) for cores in layout)
    used = {cpu for instance in instances for cpu in instance.cpus}
    kept = {cpu for core in reserved for cpu in core.cpus}
    return Placement(
        instances=instances,
        idle=_cpus(core for core in allowed if not (used | kept) & set(core.cpus)),
        # An isolated sibling of a reserved core is as free as the rest of it.
        reserved=_cpus(core for core in allowed if kept & set(core.cpus)),
        warnings=(*warnings, *describe_crossings(machine, layout), *describe_detours(machine, layout)),
    )


def _cpus(cores: Iterable[Core]) -> tuple[int, ...]:
    return tuple(sorted(cpu for core in cores for cpu in core.cpus))
