"""Cores in rows: which of a machine's cores stand together in a picture of it."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from pinstripe.machine import Core, Machine, format_cpu_list

__all__ = ["Block", "Row", "blocks", "cpu_ranges", "row_lengths", "rows"]

_ROW_LENGTHS: Final = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
_LEAST_STRIDE_RUN: Final = 4
"""CPU numbers at equal distances that are worth an abbreviation."""

Row = list[list[Core]]
"""Cores by level-3 cache."""


class Block(NamedTuple):
    """Cores of one package on one node.

    Attributes:
        packages: Its index, `?` where the kernel does not say. On kernels that take each core for a package, the
            indices of all on the node.
        node: Its id, or None.
        caches: The cores by level-3 cache; in one group where the kernel does not say, or each core has its own.
    """

    packages: str
    node: int | None
    caches: list[list[Core]]


def blocks(machine: Machine) -> list[Block]:
    """Return all cores of a machine, each once, by package, node, cache and CPU."""
    ordered = sorted(machine.cores, key=_place)
    groups = [list(cores) for _, cores in groupby(ordered, key=lambda core: (core.package, core.node))]
    if all(len(cores) == 1 for cores in groups):
        # A kernel that takes each core for a package: rows of nodes say more than rows of one core.
        ordered.sort(key=lambda core: (_unknown_last(core.node), core.cpus))
        groups = [list(cores) for _, cores in groupby(ordered, key=lambda core: core.node)]
    return [Block(_packages(cores), cores[0].node, _caches(cores)) for cores in groups]


def row_lengths(machine_blocks: Sequence[Block]) -> Iterator[int]:
    """Yield numbers of cores in a row that look even, the longest first: powers of two, and divisors of a cache's."""
    largest = max(len(cache) for block in machine_blocks for cache in block.caches)
    yield from (length for length in _ROW_LENGTHS if largest % length == 0 or length & (length - 1) == 0)


def rows(block: Block, length: int) -> list[Row]:
    """Cut a block into rows of at most `length` cores: whole caches where they fit, else parts of one."""
    cut: list[Row] = []
    free = 0
    for cache in block.caches:
        if len(cache) <= free:
            cut[-1].append(cache)
            free -= len(cache)
            continue
        parts = [cache[start : start + length] for start in range(0, len(cache), length)]
        cut.extend([part] for part in parts)
        free = length - len(cache) if len(parts) == 1 else 0
    return cut


def cpu_ranges(cpus: Sequence[int]) -> str:
    """Put ascending CPU numbers in words: `0-3,8`, or `0,4..28` for equal distances."""
    steps = {later - earlier for earlier, later in pairwise(cpus)}
    if len(steps) == 1 and len(cpus) >= _LEAST_STRIDE_RUN and steps != {1}:
        return f"{cpus[0]},{cpus[1]}..{cpus[-1]}"
    return format_cpu_list(cpus)


def _place(core: Core) -> tuple[float, float, float, tuple[int, ...]]:
    return _unknown_last(core.package), _unknown_last(core.node), _unknown_last(core.l3), core.cpus


def _unknown_last(number: int | None) -> float:
    return float("inf") if number is None else number


def _packages(cores: Sequence[Core]) -> str:
    known = {core.package for core in cores if core.package is not None}
    return format_cpu_list(known) if known else "?"


def _caches(cores: list[Core]) -> list[list[Core]]:
    caches = [list(group) for _, group in groupby(cores, key=lambda core: core.l3)]
    return [cores] if all(len(cache) == 1 for cache in caches) else caches
