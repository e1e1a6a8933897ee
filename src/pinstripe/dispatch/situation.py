"""Everything that a decision depends on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pinstripe.configuration import DispatchRule, InstanceGroup
from pinstripe.dispatch.cost_model import CostModel
from pinstripe.dispatch.entry import Entry
from pinstripe.dispatch.queue import Queue, Shelf

__all__ = ["InstanceState", "Situation"]


@dataclass(slots=True)
class InstanceState:
    """What an instance is doing.

    Attributes:
        group: Index of its group.
        available: Whether it can be given work at all; not while its worker is started again.
        began_ns: When its batch was given to it; None if it has none.
        expected_ns: When that should end.
        owes_turn: Whether its last batch was taken because it was overdue, so that the usual order has its turn.
    """

    group: int
    available: bool = True
    began_ns: int | None = None
    expected_ns: int = 0
    owes_turn: bool = False

    @property
    def idle(self) -> bool:
        """Whether it can begin something now."""
        return self.available and self.began_ns is None

    def free_ns(self, now_ns: int) -> float:
        """Return when it can begin something; what is late is expected to take as long again as it is late."""
        if not self.available:
            return math.inf
        if self.began_ns is None:
            return now_ns
        return self.expected_ns if self.expected_ns > now_ns else 2 * now_ns - self.expected_ns


@dataclass(frozen=True, slots=True)
class Situation:
    """What waits, who is there, what things cost, and what the time is.

    Attributes:
        now_ns: The time.
        queue: What waits; by the classes of the groups for `smart`, in one class for the others.
        instances: All instances.
        groups: What they belong to.
        costs: What batches cost in each group.
        rule: What was asked for.
    """

    now_ns: int
    queue: Queue
    instances: Sequence[InstanceState]
    groups: Sequence[InstanceGroup]
    costs: Sequence[CostModel]
    rule: DispatchRule

    def budget(self, group: int) -> int:
        """Return the most tokens of a batch of a group."""
        return self.rule.tokens * self.groups[group].cores

    def members(self, group: int) -> list[InstanceState]:
        """Return the instances of a group."""
        return [one for one in self.instances if one.group == group]

    def is_idle(self, group: int) -> bool:
        """Return whether an instance of a group is idle."""
        return any(one.idle for one in self.instances if one.group == group)

    def share(self, shelf: Shelf, group: int) -> int:
        """Return how many entries of a shelf an idle instance of a group takes, so that others get theirs."""
        idle = sum(one.idle for one in self.instances if one.group == group)
        return -(-len(shelf) // max(1, idle))

    def time_ns(self, entry: Entry, group: int) -> float:
        """Return the time that an entry takes in a group, alone."""
        return self.costs[group].predict_ns(entry.texts or 1, entry.tokens)

    def end_ns(self, entry: Entry, group: int) -> float:
        """Return when an entry would end if the first instance of a group that is free took it."""
        free_ns = min((one.free_ns(self.now_ns) for one in self.members(group)), default=math.inf)
        return free_ns + self.time_ns(entry, group)

    def clear_ns(self, shelf: Shelf, group: int) -> float:
        """Return when a group would be through with all that waits on a shelf, if nobody helped."""
        members = self.members(group)
        free_ns = sum(one.free_ns(self.now_ns) for one in members) / len(members)
        fixed, linear, square = self.costs[group].coefficients
        return free_ns + (fixed * len(shelf) + linear * shelf.tokens + square * shelf.squares) / len(members)
