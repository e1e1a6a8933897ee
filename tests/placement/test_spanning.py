"""The choice of groups for an instance that fits into none."""

from itertools import combinations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pinstripe.placement.spanning import span

FREE = st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FREE, st.data())
def test_chosen_groups_are_the_fewest_that_hold_the_size(free: list[int], data: st.DataObject) -> None:
    """Trying all choices finds none of fewer groups; the chosen ones hold enough, none of them in vain."""
    size = data.draw(st.integers(1, sum(free)))
    row = st.lists(st.integers(0, 5), min_size=len(free), max_size=len(free))
    distances = data.draw(st.lists(row, min_size=len(free), max_size=len(free)))
    chosen = span(free, size, distances)
    assert list(chosen) == sorted(set(chosen))
    assert sum(free[index] for index in chosen) >= size
    assert all(sum(some) < size for some in combinations(free, len(chosen) - 1))


def test_near_groups_come_before_a_better_fit() -> None:
    """On a line, 4 + 4 neighbours hold 6; of equally near pairs the one of 4 + 2 leaves nothing over."""
    line = [[abs(i - j) for j in range(3)] for i in range(3)]
    assert span([4, 4, 2], 6, line) == (1, 2)
    assert span([4, 4, 1], 6, line) == (0, 1)
    assert span([4, 1, 4], 8, line) == (0, 2)
