"""Instances laid out by number, sizes and strategy."""

import math
from collections import Counter

from pinstripe.errors import PlacementError
from pinstripe.machine import Core, Machine
from pinstripe.placement.groups import describe_node
from pinstripe.placement.layout import Layout, count_threads
from pinstripe.placement.quota import describe_quota, thread_limit
from pinstripe.placement.refusal import describe_refusal
from pinstripe.placement.search import Search, search_over
from pinstripe.placement.wish import Wish
from pinstripe.placement.words import counted, named_cpus

__all__ = ["unbound_layout"]


def unbound_layout(machine: Machine, cores: tuple[Core, ...], wish: Wish) -> tuple[Layout, list[str]]:
    """Lay instances out over cores.

    Args:
        machine: The machine, for its distances and its CPU quota.
        cores: The cores to use, cut down to the CPUs that threads may be placed on; at least one.
        wish: Its instances, cores, sizes and strategy count.

    Returns:
        The layout, and warnings about how it came about.

    Raises:
        PlacementError: The wish cannot be met.
    """
    search = search_over(machine, cores, wish.strategy)
    layout, remarks = _lay_out_sizes(machine, search, wish) if wish.sizes else _lay_out_equal(machine, search, wish)
    unknown = _describe_unknown_l3(cores) if wish.strategy == "l3" else []
    return layout, [*_describe_isolated(machine), *unknown, *remarks]


def _lay_out_sizes(machine: Machine, search: Search, wish: Wish) -> tuple[Layout, list[str]]:
    """Place the larger ones first, and number all as they are wished."""
    order = sorted(range(len(wish.sizes)), key=lambda number: -wish.sizes[number])
    layout = search.best_of([wish.sizes[number] for number in order])
    if layout is None or count_threads(layout) > thread_limit(machine):
        raise PlacementError(describe_refusal(machine, search, wish))
    placed = dict(zip(order, layout, strict=True))
    return tuple(placed[number] for number in range(len(wish.sizes))), []


def _lay_out_equal(machine: Machine, search: Search, wish: Wish) -> tuple[Layout, list[str]]:
    found = search.best(wish.instances, wish.cores, thread_limit(machine))
    if found is None:
        raise PlacementError(describe_refusal(machine, search, wish))
    shape, layout = found
    remarks = _describe_parts_of_nodes(search, layout) if wish.strategy == "node" else []
    unlimited = search.best(wish.instances, wish.cores, math.inf)
    if unlimited is not None and unlimited[0] != shape:
        visible = counted(sum(group.size for group in search.groups), "usable core")
        remarks.append(f"Placed {shape} instead of {unlimited[0]}: of {visible}, {describe_quota(machine)}.")
    return layout, remarks


def _describe_isolated(machine: Machine) -> list[str]:
    left_out = set(machine.isolated) & set(machine.allowed)
    if not left_out:
        return []
    return [f"Left out {named_cpus(left_out)}, isolated from the scheduler; to use isolated CPUs, --bind to them."]


def _describe_unknown_l3(cores: tuple[Core, ...]) -> list[str]:
    unknown = [core for core in cores if core.l3 is None]
    if not unknown:
        return []
    instead = "node" if all(core.package is None for core in unknown) else "package"
    number = counted(len(unknown), "core")
    return [f"The level-3 cache of {number} is unknown: an instance stays within a {instead} there."]


def _describe_parts_of_nodes(search: Search, layout: Layout) -> list[str]:
    used = Counter(core.node for cores in layout for core in cores)
    return [
        f"{used[group.node]} of {group.size} cores of {describe_node(group.node)} are used: every instance has as many."
        for group in search.groups
        if 0 < used[group.node] < group.size
    ]
