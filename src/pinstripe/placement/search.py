"""The best layout of given cores, and what to say where there is none."""

from collections.abc import Iterable
from dataclasses import dataclass

from pinstripe.machine import Core, Machine
from pinstripe.placement.groups import Group, distances, group_by_l3, group_by_node
from pinstripe.placement.layout import Layout, count_threads, lay_out
from pinstripe.placement.shapes import Shape, shapes
from pinstripe.placement.wish import Strategy

__all__ = ["Search", "search_over"]


@dataclass(frozen=True)
class Search:
    """Cores to lay instances out over.

    Attributes:
        groups: The cores, by what an instance should not leave.
        distances: `[i][j]` is how far group j is from group i.
        strategy: As in `Wish`.
    """

    groups: tuple[Group, ...]
    distances: tuple[tuple[int, ...], ...]
    strategy: Strategy

    def best(self, instances: int | None, cores: int | None, limit: float) -> tuple[Shape, Layout] | None:
        """Find the best layout for these numbers (as in `Wish`) with at most `limit` threads, if there is one."""
        sizes = [group.size for group in self.groups]
        for shape in shapes(sizes, strategy=self.strategy, instances=instances, cores=cores):
            if shape.instances * shape.cores > limit:
                continue
            layout = lay_out(self.groups, shape, in_turn=self.strategy == "scatter", distances=self.distances)
            if count_threads(layout) <= limit:
                return shape, layout
        return None

    def alternatives(self, instances: int | None, cores: int | None, limit: float) -> list[Shape]:
        """List what can be had where these numbers cannot: first by giving up one of them, then the other."""
        if instances and cores:
            nearby: list[tuple[int | None, int | None]] = [(instances, None), (None, cores), (None, None)]
        elif instances:
            nearby = [(None, 1), (None, None)]
        else:
            nearby = [(1, None), (None, None)]
        found = [self.best(*numbers, limit) for numbers in nearby]
        return list(dict.fromkeys(best[0] for best in found if best is not None))


def search_over(machine: Machine, cores: Iterable[Core], strategy: Strategy) -> Search:
    """Prepare a search over cores that are cut down to the CPUs that threads may be placed on."""
    groups = group_by_l3(cores) if strategy == "l3" else group_by_node(cores)
    return Search(groups, distances(machine, groups), strategy)
