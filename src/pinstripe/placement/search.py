"""The best layout of given cores, and what to say where there is none."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pinstripe.machine import Core, Machine
from pinstripe.placement.groups import Group, distances, group_by_l3, group_by_node
from pinstripe.placement.layout import Layout, count_threads, lay_out, lay_out_sizes
from pinstripe.placement.memory import nodes_with_memory
from pinstripe.placement.packing import find_homes
from pinstripe.placement.shapes import Shape, shapes
from pinstripe.placement.wish import Strategy

__all__ = ["Search", "search_over"]

Distances = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Search:
    """Cores to lay instances out over.

    Attributes:
        groups: The cores, by what an instance should not leave.
        distances: `[i][j]` is how far group j is from group i.
        strategy: As in `Wish`.
        with_memory: Ids of the nodes that can give memory; they are preferred where shapes are equal.
    """

    groups: tuple[Group, ...]
    distances: tuple[tuple[int, ...], ...]
    strategy: Strategy
    with_memory: frozenset[int]

    def best(self, instances: int | None, cores: int | None, limit: float) -> tuple[Shape, Layout] | None:
        """Find the best layout for these numbers (as in `Wish`) with at most `limit` threads, if there is one."""
        sizes = [group.size for group in self.groups]
        for shape in shapes(sizes, strategy=self.strategy, instances=instances, cores=cores):
            if shape.instances * shape.cores > limit:
                continue
            layouts = [layout for layout in self._layouts(shape) if count_threads(layout) <= limit]
            if layouts:
                return shape, max(layouts, key=self._count_near_memory)
        return None

    def best_of(self, sizes: Sequence[int]) -> Layout | None:
        """Find the best layout for instances of these sizes, the largest first, if there is one."""
        if sum(sizes) > sum(group.size for group in self.groups):
            return None
        layouts = [layout for groups, apart in self._orders() for layout in self._layouts_of(sizes, groups, apart)]
        return max(layouts, key=lambda one: (-self._count_crossings(one), self._count_near_memory(one)), default=None)

    def _layouts(self, shape: Shape) -> Iterator[Layout]:
        """Lay a shape out over the groups in order and, unless nearness decides, over those with memory first."""
        for groups, apart in self._orders()[: 1 if shape.reach == "across" else None]:
            yield lay_out(groups, shape, in_turn=self.strategy == "scatter", distances=apart)

    def _layouts_of(self, sizes: Sequence[int], groups: Sequence[Group], apart: Distances) -> Iterator[Layout]:
        """Lay sizes out: each in its turn where there is room then and, if that goes wrong, where all find room."""
        in_turn = self.strategy == "scatter"
        room = [group.size for group in groups]
        homes = find_homes(room, sizes, in_turn=in_turn, alone=self.strategy == "node")
        if self.strategy in {"l3", "node"}:
            if None not in homes:
                yield lay_out_sizes(groups, sizes, homes, in_turn=in_turn, distances=apart)
            return
        for known in ([None] * len(sizes), homes):
            yield lay_out_sizes(groups, sizes, known, in_turn=in_turn, distances=apart)

    def _orders(self) -> list[tuple[list[Group], Distances]]:
        """Return the groups in order, and those with memory first, each with their distances."""
        indices = range(len(self.groups))
        orders = [list(indices), sorted(indices, key=lambda index: self.groups[index].node not in self.with_memory)]
        return [
            ([self.groups[index] for index in order], [[self.distances[i][j] for j in order] for i in order])
            for order in orders
        ]

    def _count_near_memory(self, layout: Layout) -> int:
        return sum(core.node in self.with_memory for cores in layout for core in cores)

    def _count_crossings(self, layout: Layout) -> int:
        return sum(len({core.node for core in cores}) > 1 for cores in layout)

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
    return Search(groups, distances(machine, groups), strategy, frozenset(nodes_with_memory(machine)))
