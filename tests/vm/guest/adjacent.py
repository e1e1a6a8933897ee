"""Two sockets of two dies, CPUs of a core next to each other; then some CPUs are switched off."""

from pathlib import Path
from typing import Any

from pinstripe.errors import PlacementError
from pinstripe.machine import read_machine, read_offline
from pinstripe.placement import Wish, place

from .processes import placed
from .wishes import machine_and_placements

__all__ = ["results"]


def results() -> dict[str, Any]:
    """Return all that is tried."""
    whole = machine_and_placements()
    for cpu in (3, 4, 5):
        Path(f"/sys/devices/system/cpu/cpu{cpu}/online").write_text("0")
    return {
        **whole,
        "offline": {
            **machine_and_placements(),
            "cpus": read_offline(),
            "bound": _refusal(Wish(bind="2|3")),
            "process": placed(cpus=(3,)),
            "process_partly": placed(cpus=(2, 3)),
        },
    }


def _refusal(wish: Wish) -> str:
    try:
        return str(place(read_machine(), wish))
    except PlacementError as error:
        return str(error)
