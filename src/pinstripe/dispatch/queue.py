"""What waits, in the orders in which it is looked for."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final

from pinstripe.dispatch.entry import Entry
from pinstripe.dispatch.request import Lane

__all__ = ["LANES", "Queue", "Shelf"]

LANES: Final[tuple[Lane, ...]] = ("single", "bulk")
_NEVER: Final = -(1 << 62)


class Shelf:
    """The entries of one lane and one length class.

    Attributes:
        tokens: Sum of all entries' tokens, those of ready batches with their padding.
        squares: Sum of the squares, likewise for each text.
        latest_ns: When the last one came, also if it has gone since; long ago if none has come.
    """

    def __init__(self) -> None:
        self._by_due: list[tuple[int, int, Entry]] = []
        self._by_length: list[tuple[int, int, Entry]] = []
        self.tokens = 0
        self.squares = 0
        self.latest_ns = _NEVER

    def __len__(self) -> int:
        return len(self._by_due)

    def add(self, entry: Entry) -> None:
        """Take an entry in."""
        insort(self._by_due, (entry.due_ns, entry.number, entry))
        insort(self._by_length, (entry.tokens, entry.number, entry))
        self._count(entry, 1)
        self.latest_ns = max(self.latest_ns, entry.arrival_ns)

    def remove(self, entry: Entry) -> None:
        """Let an entry go that is here."""
        for order, key in ((self._by_due, entry.due_ns), (self._by_length, entry.tokens)):
            del order[bisect_left(order, (key, entry.number))]
        self._count(entry, -1)

    @property
    def first(self) -> Entry:
        """The one that is due first, if any is here."""
        return self._by_due[0][2]

    @property
    def last(self) -> Entry:
        """The one that is due last, if any is here."""
        return self._by_due[-1][2]

    @property
    def shortest(self) -> Entry:
        """The one with the fewest tokens, of equal ones that which came first; if any is here."""
        return self._by_length[0][2]

    def in_turn(self) -> Sequence[tuple[int, int, Entry]]:
        """Return all in the order in which they are due: (due, number, entry)."""
        return self._by_due

    def by_length(self) -> Sequence[tuple[int, int, Entry]]:
        """Return all in the order of their lengths: (tokens, number, entry)."""
        return self._by_length

    def _count(self, entry: Entry, sign: int) -> None:
        texts = entry.texts or 1
        self.tokens += sign * texts * entry.tokens
        self.squares += sign * texts * entry.tokens**2


class Queue:
    """All that waits, by lane and length class."""

    def __init__(self, classes: int) -> None:
        """Begin empty, for that many length classes."""
        self._shelves = {lane: tuple(Shelf() for _ in range(classes)) for lane in LANES}
        self._deadlines: list[tuple[int, int, int]] = []
        self._entries: dict[int, tuple[Entry, int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def shelf(self, lane: Lane, length_class: int) -> Shelf:
        """Return what waits in a lane and length class."""
        return self._shelves[lane][length_class]

    def lane(self, lane: Lane) -> tuple[Shelf, ...]:
        """Return what waits in a lane, by length class."""
        return self._shelves[lane]

    def add(self, entry: Entry, length_class: int) -> None:
        """Take an entry in."""
        self._entries[entry.number] = (entry, length_class)
        self._shelves[entry.lane][length_class].add(entry)
        if entry.deadline_ns is not None:
            insort(self._deadlines, (entry.deadline_ns, entry.number, length_class))

    def remove(self, number: int) -> bool:
        """Let an entry go; return whether it was here."""
        found = self._entries.pop(number, None)
        if found is None:
            return False
        entry, length_class = found
        self._shelves[entry.lane][length_class].remove(entry)
        if entry.deadline_ns is not None:
            del self._deadlines[bisect_left(self._deadlines, (entry.deadline_ns, number, length_class))]
        return True

    @property
    def first_deadline_ns(self) -> int | None:
        """The deadline that passes first; None if there is none."""
        return self._deadlines[0][0] if self._deadlines else None

    def expired(self, now_ns: int) -> list[int]:
        """Return the numbers of those whose deadline has passed, the latest first.

        In this order thousands can be removed quickly: what is behind an entry moves up, so the last ones go first.
        """
        passed = bisect_left(self._deadlines, (now_ns + 1,))
        return [number for _, number, _ in reversed(self._deadlines[:passed])]
