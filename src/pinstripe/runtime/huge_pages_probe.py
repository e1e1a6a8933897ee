"""Whether this process gets transparent huge pages."""

import msgspec

__all__ = ["HugePagesObservation", "observe_huge_pages"]


class HugePagesObservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the kernel gave for memory that was allocated and touched, as `AnonHugePages` of that memory says.

    Attributes:
        allocated: Whether a large block of `malloc` came in huge pages.
        advised: Whether memory did for which they were asked (`MADV_HUGEPAGE`).
    """

    allocated: bool
    advised: bool


def observe_huge_pages() -> HugePagesObservation | None:
    """Probe this process; None where the kernel does not say."""
    return None
