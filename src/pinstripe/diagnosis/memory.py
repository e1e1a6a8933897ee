"""Memory: huge pages, and how much is free."""

from pinstripe.diagnosis.finding import Finding
from pinstripe.diagnosis.observations import Observations

__all__ = ["free_memory", "huge_pages"]

_GIB = 1 << 30
_SCARCE_BYTES = 2 * _GIB
"""A BERT-base in float32 has 0.4 GiB of weights; its framework and activations take as much again or more."""
_TOO_LITTLE_BYTES = _SCARCE_BYTES // 2


def huge_pages(seen: Observations) -> Finding | None:
    """Does memory come in huge pages?"""
    mode = seen.machine.thp
    if mode is None:
        return None
    if mode == "always":
        return Finding(
            subject="huge-pages",
            severity="good",
            title="Memory comes in huge pages",
            seen="transparent huge pages: always",
            certainty="certain",
        )
    refused = (seen.refused_knobs or {}).get("hugepages", {})
    if mode == "madvise":
        title = "Huge pages only for programs that ask for them"
        cost = (
            "With 4 KiB pages a model of some hundred MB misses the TLB more often; the gain is some per cent at most."
        )
        remedy = refused.get(
            "always", "`pinstripe bench MODEL --hugepages madvise,always` compares, in its own processes"
        )
    else:
        title = "Huge pages are switched off"
        cost = "Models cannot have huge pages, so that large ones miss the TLB more often; some per cent at most."
        way_out = refused.get("madvise", "").partition("; ")[2]
        remedy = "`echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`" + (
            way_out and f"; or {way_out}"
        )
    return Finding(
        subject="huge-pages",
        severity="note",
        title=title,
        seen=f"transparent huge pages: {mode}",
        cost=cost,
        remedy=remedy,
        certainty="possible",
    )


def free_memory(seen: Observations) -> Finding | None:
    """Is there room for models?"""
    available, limit = seen.memory.available_bytes, seen.memory.limit_bytes
    if available is None:
        return None
    values = f"{available / _GIB:.1f} GiB available" + (f", limit {limit / _GIB:.1f} GiB" if limit else "")
    if available >= _SCARCE_BYTES:
        return Finding(subject="free-memory", severity="good", title="Memory is free", seen=values, certainty="certain")
    return Finding(
        subject="free-memory",
        severity="problem" if available < _TOO_LITTLE_BYTES else "warning",
        title="Little memory is free",
        seen=values,
        cost="Each instance has its own copy of the weights; when memory runs out the kernel swaps, or kills one.",
        remedy="fewer instances, a smaller precision, or a higher limit",
        certainty="likely",
    )
