"""Many wishes, each placed on the machine as it is."""

from collections.abc import Iterable
from itertools import product
from typing import Any, get_args

import msgspec

from pinstripe.errors import PlacementError
from pinstripe.machine import Machine, read_machine
from pinstripe.placement import SmtUse, Strategy, Wish, place

from .progress import tell

__all__ = ["FEW_SIZES", "SIZES", "machine_and_placements", "placements"]

SIZES = (
    *((None, None), (None, 1), (None, 2), (1, None), (1, 1), (1, 3), (2, None), (2, 1), (2, 2)),
    *((3, None), (3, 1), (4, None), (4, 1), (4, 2), (8, None)),
)
"""Instances, and cores of each."""
FEW_SIZES = ((None, None), (None, 1), (1, 2), (2, None), (2, 1), (4, 1))


def machine_and_placements(sizes: Iterable[tuple[int | None, int | None]] = SIZES) -> dict[str, Any]:
    """Return the machine as it is read, and what `placements` says of it."""
    machine = read_machine()
    return {"machine": msgspec.to_builtins(machine), "placements": placements(machine, sizes)}


def placements(machine: Machine, sizes: Iterable[tuple[int | None, int | None]] = SIZES) -> list[dict[str, Any]]:
    """Place each size by each strategy, with one and with all hardware threads, with and without a core reserved."""
    tell("placements")
    found = []
    for (instances, cores), strategy, smt, reserve in product(sizes, get_args(Strategy), get_args(SmtUse), (0, 1)):
        wish = Wish(instances=instances, cores=cores, strategy=strategy, smt=smt, reserve=reserve)
        found.append({"wish": msgspec.to_builtins(wish), **_answer(machine, wish)})
    return found


def _answer(machine: Machine, wish: Wish) -> dict[str, Any]:
    try:
        placement = place(machine, wish)
    except PlacementError as error:
        return {"refusal": str(error)}
    answer: dict[str, Any] = msgspec.to_builtins(placement)
    return answer
