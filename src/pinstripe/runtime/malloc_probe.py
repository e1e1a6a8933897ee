"""Which library serves this process's memory, and how."""

import msgspec

__all__ = ["MallocObservation", "observe_malloc"]


class MallocObservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What serves `malloc`.

    Attributes:
        path: File of the library that `malloc` resolves to: a replacement that is mapped but not used is not it.
        keeps_large: Whether a large block that was freed stays with the process, to be used again without page faults;
            None where it was not found out.
        settings: Settings read back from the allocator, by its own names.
    """

    path: str
    keeps_large: bool | None
    settings: dict[str, str] = {}


def observe_malloc() -> MallocObservation | None:
    """Return what serves memory in this process; None where it cannot be asked."""
    return None
