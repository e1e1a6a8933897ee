"""How many instances of how many cores? The arithmetic of equal sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pinstripe.placement.wish import Strategy
from pinstripe.placement.words import counted

__all__ = ["Reach", "Shape", "room", "shapes"]

Reach = Literal["alone", "within", "across"]


@dataclass(frozen=True)
class Shape:
    """A number of instances of equal size.

    Attributes:
        instances: Number of instances, at least 1.
        cores: Cores of each, at least 1.
        reach: `alone`: each has a group to itself; `within`: each stays within a group, which it may share;
            `across`: as few as possible leave their group.
    """

    instances: int
    cores: int
    reach: Reach

    def __str__(self) -> str:
        """Put the shape in words, such as `2 instances of 12 cores`."""
        return f"{counted(self.instances, 'instance')} of {counted(self.cores, 'core')}"


def room(sizes: Sequence[int], cores: int, reach: Reach) -> int:
    """Count the instances of `cores` cores that fit into groups of these sizes (in cores)."""
    match reach:
        case "alone":
            return sum(size >= cores for size in sizes)
        case "within":
            return sum(size // cores for size in sizes)
        case "across":
            return sum(sizes) // cores


def shapes(
    sizes: Sequence[int], *, strategy: Strategy, instances: int | None = None, cores: int | None = None
) -> Iterator[Shape]:
    """List the shapes that fit into groups of these sizes and meet the wish, best first.

    What comes later than the first is for limits that are not known here (a CPU quota).

    Args:
        sizes: Cores of each group: level-3 groups for strategy `l3`, nodes for the others.
        strategy: As in `Wish`.
        instances: As in `Wish`; at least 1 or None.
        cores: As in `Wish`; at least 1 or None.
    """
    if strategy == "node" or (strategy == "l3" and instances is None and cores is None):
        candidates = _alone(sizes, instances, cores)
    else:
        reaches: tuple[Reach, ...] = ("within",) if strategy == "l3" else ("within", "across")
        candidates = _shared(sizes, instances, cores, reaches)
    return (shape for shape in candidates if shape.instances <= room(sizes, shape.cores, shape.reach))


def _alone(sizes: Sequence[int], instances: int | None, cores: int | None) -> Iterator[Shape]:
    """A group for each: the most cores in use, then the most instances; only if need be less than a whole group."""
    whole = [
        Shape(count, size, "alone")
        for size in set(sizes)
        for count in range(1, len(sizes) + 1)
        if instances in {None, count} and cores in {None, size}
    ]
    yield from sorted(whole, key=lambda shape: (-shape.instances * shape.cores, -shape.instances))
    if cores is None:
        yield from (Shape(instances or 1, size, "alone") for size in range(max(sizes), 0, -1))


def _shared(
    sizes: Sequence[int], instances: int | None, cores: int | None, reaches: Sequence[Reach]
) -> Iterator[Shape]:
    if cores is not None:
        for reach in reaches:
            counts = range(room(sizes, cores, reach), 0, -1) if instances is None else (instances,)
            yield from (Shape(count, cores, reach) for count in counts)
        return
    count = instances or 1
    # Several instances of a size of our choice can always stay within groups; a single one is meant to have all cores.
    for size in range(sum(sizes) // count, 0, -1):
        yield from (Shape(count, size, reach) for reach in (reaches if count == 1 else ("within",)))
