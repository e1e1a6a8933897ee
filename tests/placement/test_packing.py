"""Which instances of several sizes stay within a group."""

import time
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pinstripe.placement.packing import find_homes


def most_held(free: tuple[int, ...], sizes: tuple[int, ...], *, alone: bool) -> int:
    """Return how many instances find room, by trying every way."""
    if not sizes:
        return 0
    best = most_held(free, sizes[1:], alone=alone)
    for index, cores in enumerate(free):
        if cores >= sizes[0]:
            left = (*free[:index], 0 if alone else cores - sizes[0], *free[index + 1 :])
            best = max(best, 1 + most_held(left, sizes[1:], alone=alone))
    return best


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    st.lists(st.integers(1, 6), max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_as_many_stay_as_can(free: list[int], sizes: list[int], in_turn: bool, alone: bool) -> None:  # noqa: FBT001 - drawn
    """Whoever has a home fits into it with the others there, and no other choice has more of them."""
    sizes = sorted(sizes, reverse=True)
    assume(sum(sizes) <= sum(free))
    homes = find_homes(free, sizes, in_turn=in_turn, alone=alone)

    held: Counter[int] = Counter()
    for home, size in zip(homes, sizes, strict=True):
        if home is not None:
            held[home] += size
    assert all(cores <= free[home] for home, cores in held.items())
    if alone:
        assert len(set(homes) - {None}) == len([home for home in homes if home is not None])
    assert len(homes) - homes.count(None) == most_held(tuple(free), tuple(sizes), alone=alone)


@pytest.mark.parametrize(
    ("free", "sizes", "homes"),
    [
        ([4, 4], [3, 3, 2], [0, 1, None]),
        ([10, 10], [4, 4, 3, 3, 3, 3], [0, 1, 0, 0, 1, 1]),
        ([4, 4, 4], [6, 3, 3], [None, 0, 1]),
        ([2, 2], [], []),
        ([0, 0], [1], [None]),
    ],
)
def test_by_hand(free: list[int], sizes: list[int], homes: list[int | None]) -> None:
    """The larger ones stay, each in the first group that will do."""
    assert find_homes(free, sizes, in_turn=False, alone=False) == homes


def test_what_would_take_for_ever_does_not() -> None:
    """A thousand instances that nearly fill 32 nodes are given homes within what is looked at."""
    sizes = sorted([7] * 128 + [5] * 160 + [3] * 160, reverse=True)
    homes = find_homes([69] * 32, sizes, in_turn=False, alone=False)

    assert len(homes) == 448
    assert homes.count(None) <= 32


def test_more_cores_than_there_are_is_known_at_once() -> None:
    """448 instances for a machine that lacks 256 of their 2,176 cores cannot be: no way to begin is tried."""
    sizes = sorted([7] * 128 + [5] * 160 + [3] * 160, reverse=True)
    began_s = time.perf_counter()

    assert find_homes([60] * 32, sizes, in_turn=False, alone=False) == [None] * 448
    assert time.perf_counter() - began_s < 1
