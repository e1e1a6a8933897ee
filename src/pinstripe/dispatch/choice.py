"""What an idle instance does next."""

from dataclasses import dataclass
from typing import Literal

from pinstripe.dispatch.entry import Entry

__all__ = ["Batch", "Rest", "Why"]

Why = Literal["nothing waits", "kept for its own class", "sooner elsewhere"]


@dataclass(frozen=True, slots=True)
class Batch:
    """It runs these entries together.

    Attributes:
        entries: At least one, of one shelf.
        out_of_turn: Whether they were taken because they were overdue.
    """

    entries: tuple[Entry, ...]
    out_of_turn: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """It runs nothing for now.

    Attributes:
        why: The reason.
        until_ns: When to ask again at the latest, even if nothing has come or ended; None for no such time.
    """

    why: Why
    until_ns: int | None = None
