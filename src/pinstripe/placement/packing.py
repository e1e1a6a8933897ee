"""Which instances of several sizes stay within a group, and in which?"""

from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["find_homes"]

_MOST_STATES: Final = 4096
"""Ways to fill groups that are looked at; packing is NP-hard, and machines have few nodes of few sizes."""


def find_homes(free: Sequence[int], sizes: Sequence[int], *, in_turn: bool, alone: bool) -> list[int | None]:
    """Find a group for as many instances as can be; where not for all, for the larger ones first.

    Args:
        free: Free cores of each group.
        sizes: Cores of each instance, the largest first.
        in_turn: Prefer the group that has got the fewest instances, else the first.
        alone: Whether an instance has its group to itself.

    Returns:
        The index of each instance's group; None for one that has to take its cores from several, and for all where
        these need more cores than there are.
    """
    if sum(sizes) > sum(free):
        return [None] * len(sizes)

    def pack(some: Sequence[int]) -> list[int] | None:
        return _pack(free, [sizes[place] for place in some], in_turn=in_turn, alone=alone)

    places = range(len(sizes))
    # What holds some instances holds as many smaller ones, too: if leaving out the largest does not do, nothing does.
    leaving = next(count for count in range(len(sizes) + 1) if pack(places[count:]) is not None)
    staying: list[int] = []
    for place in places:
        if pack([*staying, place, *places[place + 1 + leaving :]]) is not None:
            staying.append(place)
        else:
            leaving -= 1
        if leaving == 0:
            staying += places[place + 1 :]
            break
    homes: dict[int, int] = dict(zip(staying, pack(staying) or (), strict=True))
    return [homes.get(place) for place in places]


def _pack(free: Sequence[int], sizes: Sequence[int], *, in_turn: bool, alone: bool) -> list[int] | None:
    """Find a group for each of these sizes by depth-first search; None if there is none, or it takes too long."""
    left = list(free)
    dealt = [0] * len(free)
    homes: list[int] = []
    seen: set[tuple[int, ...]] = set()

    def candidates() -> Iterator[int]:
        roomy = [index for index, cores in enumerate(left) if cores >= sizes[len(homes)]]
        return iter(sorted(roomy, key=dealt.__getitem__) if in_turn else roomy)

    def place(index: int, sign: int) -> None:
        left[index] -= sign * (free[index] if alone else sizes[len(homes)])
        dealt[index] += sign

    untried = [candidates()] if sizes else []
    while untried:
        index = next(untried[-1], None)
        if index is None:
            untried.pop()
            if homes:
                place(homes.pop(), -1)
            continue
        place(index, 1)
        homes.append(index)
        if len(homes) == len(sizes):
            break
        state = (len(homes), *sorted(left))
        if state in seen or len(seen) > _MOST_STATES + len(sizes):
            place(homes.pop(), -1)
            continue
        seen.add(state)
        untried.append(candidates())
    return homes if len(homes) == len(sizes) else None
