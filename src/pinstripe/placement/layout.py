"""Deal cores out to instances of equal size."""

from collections.abc import Sequence
from typing import Protocol

from pinstripe.machine import Core
from pinstripe.placement.groups import Group
from pinstripe.placement.shapes import Shape
from pinstripe.placement.spanning import span

__all__ = ["Layout", "count_threads", "lay_out", "lay_out_sizes"]

Layout = tuple[tuple[Core, ...], ...]
"""The cores of each instance, cut down to the CPUs it runs on."""


def lay_out(groups: Sequence[Group], shape: Shape, *, in_turn: bool, distances: Sequence[Sequence[int]]) -> Layout:
    """Give every instance its cores.

    Args:
        groups: Where instances should stay; `shape` must fit into them (`shapes.room`).
        shape: How many instances of how many cores.
        in_turn: Deal instances over groups, and over the level-3 groups inside, in turn; else fill one after the other.
        distances: `[i][j]` is how far group j is from group i.
    """
    stocks = [_stock_of(group, in_turn=in_turn) for group in groups]
    if shape.reach == "alone":
        roomy = [stock for stock in stocks if len(stock) >= shape.cores]
        return tuple(stock.take(shape.cores) for stock in roomy[: shape.instances])
    stock = _Groups(stocks, in_turn=in_turn, distances=distances)
    return tuple(stock.take(shape.cores) for _ in range(shape.instances))


def lay_out_sizes(
    groups: Sequence[Group],
    sizes: Sequence[int],
    homes: Sequence[int | None],
    *,
    in_turn: bool,
    distances: Sequence[Sequence[int]],
) -> Layout:
    """Give instances of these sizes their cores, in this order, but those that have a home first.

    Args:
        groups: Where instances should stay; they have enough cores for all.
        sizes: Cores of each instance.
        homes: Index of the group that each is to stay in; None for the next that can hold it, or several.
        in_turn: As in `lay_out`.
        distances: As in `lay_out`.
    """
    stocks = [_stock_of(group, in_turn=in_turn) for group in groups]
    stock = _Groups(stocks, in_turn=in_turn, distances=distances)
    taken: dict[int, tuple[Core, ...]] = {}
    for place in sorted(range(len(sizes)), key=lambda place: homes[place] is None):
        home = homes[place]
        taken[place] = (stock if home is None else stocks[home]).take(sizes[place])
    return tuple(taken[place] for place in range(len(sizes)))


def count_threads(layout: Layout) -> int:
    """Count the CPUs of all instances: one compute thread runs on each."""
    return sum(len(core.cpus) for cores in layout for core in cores)


class _Stock(Protocol):
    """Cores that no instance has yet."""

    def __len__(self) -> int: ...

    def take(self, size: int) -> tuple[Core, ...]: ...


class _Cores:
    """Neighbouring cores, taken from the front."""

    def __init__(self, cores: Sequence[Core]) -> None:
        self._cores = list(cores)

    def __len__(self) -> int:
        return len(self._cores)

    def take(self, size: int) -> tuple[Core, ...]:
        taken = tuple(self._cores[:size])
        del self._cores[:size]
        return taken


class _Groups:
    """Groups of cores: whatever is taken comes from one of them, if one can hold it."""

    def __init__(self, groups: Sequence[_Stock], *, in_turn: bool, distances: Sequence[Sequence[int]]) -> None:
        self._groups = groups
        self._in_turn = in_turn
        self._distances = distances
        self._dealt = [0] * len(groups)

    def __len__(self) -> int:
        return sum(map(len, self._groups))

    def take(self, size: int) -> tuple[Core, ...]:
        taken: list[Core] = []
        for index in self._choose(size):
            self._dealt[index] += 1
            group = self._groups[index]
            taken += group.take(min(size - len(taken), len(group)))
        return tuple(taken)

    def _choose(self, size: int) -> tuple[int, ...]:
        free = [len(group) for group in self._groups]
        roomy = [index for index, cores in enumerate(free) if cores >= size]
        if not roomy:
            return span(free, size, self._distances)
        return (min(roomy, key=self._dealt.__getitem__) if self._in_turn else roomy[0],)


def _stock_of(group: Group, *, in_turn: bool) -> _Stock:
    indices = range(len(group.parts))
    apart = [[abs(i - j) for j in indices] for i in indices]
    return _Groups([_Cores(part) for part in group.parts], in_turn=in_turn, distances=apart)
