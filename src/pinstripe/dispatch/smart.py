"""The policy that goes by length classes and predicted times.

An idle instance looks for work in this order; whoever finds some, takes it:

1. What is overdue in any class, the first due first. After that it owes a turn to the order that follows, so that a
   flood of overdue work does not shut out all else.
2. Single texts. Those of shorter classes whose instances are all busy, if they end sooner here, and do not hold up own
   work by more than a quarter of its time; then those of its own class; then those of longer classes, if these end
   sooner here.
3. Texts of the bulk lane, in the same way.

Work of a longer class would block texts that come meanwhile. So the last idle instance of a class declines it as long
as its class is in use: as long as single texts of its class, or of a shorter one, have come within the time that the
longer work has before it is overdue.
What is overdue waits for those that were due before it, and for a turn of the usual order between any two of them.
"""

from collections.abc import Iterator
from typing import Final

from pinstripe.dispatch.choice import Batch, Rest, Why
from pinstripe.dispatch.entry import Entry
from pinstripe.dispatch.gathering import gather_near
from pinstripe.dispatch.queue import LANES, Shelf
from pinstripe.dispatch.request import Lane
from pinstripe.dispatch.situation import InstanceState, Situation

__all__ = ["choose_smart"]

_MOST_DELAY: Final = 0.25
"""Share of its own work's time by which an instance puts that off for shorter texts."""
_LOOK_AGAIN_NS: Final = 100_000_000
"""How long to rest at most while something waits: what was expected to end may have got stuck."""


def choose_smart(situation: Situation, instance: InstanceState) -> Batch | Rest:
    """Return what an idle instance does next."""
    if not len(situation.queue):
        return Rest("nothing waits")
    overdue = None if instance.owes_turn else _overdue(situation, instance)
    if overdue is not None:
        return overdue
    for lane in LANES:
        found = _of_lane(situation, instance, lane)
        if found is not None:
            return found
    return _rest(situation, instance)


def _overdue(situation: Situation, instance: InstanceState) -> Batch | None:
    """Return overdue work that the instance has to take, the first due first."""
    due = sorted(
        (shelf.first.due_ns, lane != "single", group)
        for lane in LANES
        for group, shelf in enumerate(situation.queue.lane(lane))
        if _is_overdue(situation, shelf)
    )
    for _, is_bulk, group in due:
        lane: Lane = "bulk" if is_bulk else "single"
        first = situation.queue.shelf(lane, group).first
        # What others have that is due later has no right to come before what is overdue here.
        if group == instance.group or _to_help(situation, instance, lane, group) is first:
            return _batch(situation, instance, lane, group, first, out_of_turn=True)
    return None


def _of_lane(situation: Situation, instance: InstanceState, lane: Lane) -> Batch | None:
    shelf = situation.queue.shelf(lane, instance.group)
    own = shelf.first if shelf else None
    for group in range(instance.group):
        entry = _to_help(situation, instance, lane, group)
        if entry is not None and (own is None or _is_brief(situation, instance, entry, own)):
            return _batch(situation, instance, lane, group, entry)
    if own is not None:
        return _batch(situation, instance, lane, instance.group, own)
    for group in range(instance.group + 1, len(situation.groups)):
        if _is_kept(situation, instance, situation.queue.shelf(lane, group)):
            continue
        entry = _to_help(situation, instance, lane, group)
        if entry is not None:
            return _batch(situation, instance, lane, group, entry)
    return None


def _batch(
    situation: Situation, instance: InstanceState, lane: Lane, group: int, lead: Entry, *, out_of_turn: bool = False
) -> Batch:
    shelf = situation.queue.shelf(lane, group)
    entries = gather_near(
        shelf,
        lead,
        tokens=situation.budget(instance.group),
        most=situation.share(shelf, instance.group),
        predict_ns=situation.costs[instance.group].predict_ns,
    )
    return Batch(entries, out_of_turn)


def _to_help(situation: Situation, instance: InstanceState, lane: Lane, group: int) -> Entry | None:
    """Return what an instance takes off another group: what would end later there.

    That is what is due first; or, where the others would still be faster with that, what is due last, if so much
    waits that its turn would come late. Longer work has to gain a quarter of its time, where texts of the instance's
    class are likely to come meanwhile.
    """
    shelf = situation.queue.shelf(lane, group)
    if not shelf or situation.is_idle(group):
        return None
    first, last = shelf.first, shelf.last
    price = 1 + _MOST_DELAY if group > instance.group and _is_in_use(situation, instance, first) else 1.0
    if situation.now_ns + price * situation.time_ns(first, instance.group) <= situation.end_ns(first, group):
        return first
    if situation.now_ns + price * situation.time_ns(last, instance.group) <= situation.clear_ns(shelf, group):
        return last
    return None


def _is_brief(situation: Situation, instance: InstanceState, entry: Entry, own: Entry) -> bool:
    return situation.time_ns(entry, instance.group) <= _MOST_DELAY * situation.time_ns(own, instance.group)


def _is_overdue(situation: Situation, shelf: Shelf) -> bool:
    return len(shelf) > 0 and shelf.first.due_ns <= situation.now_ns


def _is_kept(situation: Situation, instance: InstanceState, longer: Shelf) -> bool:
    """Return whether an instance declines longer work: it is the last idle one for texts that are likely to come."""
    if not longer or _is_overdue(situation, longer) or sum(one.idle for one in situation.members(instance.group)) > 1:
        return False
    return _is_in_use(situation, instance, longer.first)


def _is_in_use(situation: Situation, instance: InstanceState, longer: Entry) -> bool:
    """Return whether texts of an instance's class, or a shorter one, have come within the patience of longer work."""
    since_ns = situation.now_ns - (longer.due_ns - longer.arrival_ns)
    return any(shelf.latest_ns >= since_ns for shelf in situation.queue.lane("single")[: instance.group + 1])


def _rest(situation: Situation, instance: InstanceState) -> Rest:
    """Say why nothing was taken although something waits, and when that may be otherwise."""
    why: Why = "sooner elsewhere"
    times = [situation.now_ns + _LOOK_AGAIN_NS]
    for group, shelf in _filled_shelves(situation):
        if group > instance.group and _is_kept(situation, instance, shelf):
            why = "kept for its own class"
            times.append(shelf.first.due_ns)
        elif (end_ns := situation.end_ns(shelf.first, group)) < times[0]:
            times.append(round(end_ns))
    return Rest(why, max(situation.now_ns + 1, min(times)))


def _filled_shelves(situation: Situation) -> Iterator[tuple[int, Shelf]]:
    for lane in LANES:
        for group, shelf in enumerate(situation.queue.lane(lane)):
            if shelf:
                yield group, shelf
