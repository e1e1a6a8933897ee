"""Which groups does an instance cover that fits into none of them?"""

from collections.abc import Collection, Sequence

__all__ = ["span"]


def span(free: Sequence[int], size: int, distances: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Choose the fewest groups that together hold `size` cores: those nearest to each other, then with least left over.

    Not every choice is tried: from each group on, its nearest are taken as long as the rest still fits into the
    fewest groups, and the best of these choices is the answer.

    Args:
        free: Free cores of each group.
        size: Cores wanted, at least 1 and at most the sum of `free`.
        distances: `[i][j]` is how far group j is from group i; comparable for the same i only.

    Returns:
        Indices of the chosen groups, ascending.
    """
    ranks = _mutual_ranks([index for index, cores in enumerate(free) if cores], distances)
    fewest = next(count for count in range(1, len(free) + 1) if _most(free, count) >= size)
    origins = [index for index in ranks if free[index] + _most(free, fewest - 1, {index}) >= size]
    choices = [_around(origin, ranks[origin], free, size, fewest) for origin in origins]

    def cost(choice: tuple[int, ...]) -> tuple[int, int]:
        origin, *others = choice
        return sum(ranks[origin][other] for other in others), sum(free[index] for index in choice)

    best = min(choices, key=cost)
    return tuple(sorted(best))


def _mutual_ranks(groups: Sequence[int], distances: Sequence[Sequence[int]]) -> dict[int, dict[int, int]]:
    """For each pair of groups, add up their ranks (0 is nearest) among each other's neighbours."""
    ranks = {}
    for origin in groups:
        ascending = sorted({distances[origin][other] for other in groups if other != origin})
        ranks[origin] = {other: ascending.index(distances[origin][other]) for other in groups if other != origin}
    return {i: {j: rank + ranks[j][i] for j, rank in row.items()} for i, row in ranks.items()}


def _most(free: Sequence[int], count: int, without: Collection[int] = ()) -> int:
    """Add up the largest `count` groups."""
    return sum(sorted((cores for index, cores in enumerate(free) if index not in without), reverse=True)[:count])


def _around(origin: int, ranks: dict[int, int], free: Sequence[int], size: int, fewest: int) -> tuple[int, ...]:
    """Collect groups around `origin`, nearest first, so that `fewest` of them hold `size` cores."""
    chosen, held = [origin], free[origin]
    for index in sorted(ranks, key=lambda other: ranks[other]):
        still = fewest - len(chosen) - 1
        if still >= 0 and held + free[index] + _most(free, still, {*chosen, index}) >= size:
            chosen.append(index)
            held += free[index]
    return tuple(chosen)
