"""What only a process itself can say of how it was started: asked in the worker, once its engine has run."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from pinstripe.errors import PinstripeError
from pinstripe.runtime.huge_pages_probe import HugePagesObservation, observe_huge_pages
from pinstripe.runtime.malloc_probe import MallocObservation, observe_malloc
from pinstripe.runtime.openmp_probe import OpenmpObservation, observe_openmp

__all__ = ["ProcessObservation", "observe_process"]

_Observed = TypeVar("_Observed")


class ProcessObservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a process found out about itself.

    Attributes:
        malloc: What serves its memory; None where that cannot be asked.
        openmp: The OpenMP runtime that computes; None where none is loaded, or the engine has no use for one.
        huge_pages: Which memory gets transparent huge pages; None where the kernel does not say.
        unread: Why something above is None although it was asked, by attribute.
    """

    malloc: MallocObservation | None = None
    openmp: OpenmpObservation | None = None
    huge_pages: HugePagesObservation | None = None
    unread: dict[str, str] = {}


def observe_process(*, openmp: bool) -> ProcessObservation:
    """Probe this process; to be called in the thread that runs the engine, which waits meanwhile.

    Args:
        openmp: Whether the engine computes with OpenMP; in others asking would start threads that have nothing to do.
    """
    unread: dict[str, str] = {}

    def asked(attribute: str, probe: Callable[[], _Observed | None]) -> _Observed | None:
        try:
            return probe()
        except Exception as error:  # noqa: BLE001 - what libraries of any version answer must not end a worker
            text = " ".join(str(error).split())
            unread[attribute] = text if isinstance(error, PinstripeError) else f"{type(error).__name__}: {text}"
            return None

    return ProcessObservation(
        malloc=asked("malloc", observe_malloc),
        openmp=asked("openmp", observe_openmp) if openmp else None,
        huge_pages=asked("huge_pages", observe_huge_pages),
        unread=unread,
    )
