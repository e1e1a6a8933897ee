"""The policies by name, and those that look neither at classes nor at times."""

from collections.abc import Callable, Mapping
from typing import Final

from pinstripe.configuration import Policy
from pinstripe.dispatch.choice import Batch, Rest
from pinstripe.dispatch.gathering import gather_in_turn, gather_near
from pinstripe.dispatch.queue import LANES, Shelf
from pinstripe.dispatch.situation import InstanceState, Situation
from pinstripe.dispatch.smart import choose_smart

__all__ = ["choose"]


def choose(situation: Situation, instance: InstanceState) -> Batch | Rest:
    """Return what an idle instance does next, by the rule's policy. Pure."""
    return _POLICIES[situation.rule.policy](situation, instance)


def _choose_fifo(situation: Situation, instance: InstanceState) -> Batch | Rest:
    """Take what came first; single texts before bulk, unless that is overdue."""
    shelf = _shelf(situation, instance)
    if shelf is None:
        return Rest("nothing waits")
    entries = gather_in_turn(
        shelf, tokens=situation.budget(instance.group), most=situation.share(shelf, instance.group)
    )
    return Batch(entries, out_of_turn=shelf is not situation.queue.shelf("single", 0))


def _choose_shortest(situation: Situation, instance: InstanceState) -> Batch | Rest:
    """Take the shortest, unless something is overdue; single texts before bulk likewise."""
    shelf = _shelf(situation, instance)
    if shelf is None:
        return Rest("nothing waits")
    overdue = shelf.first.due_ns <= situation.now_ns and not instance.owes_turn
    entries = gather_near(
        shelf,
        shelf.first if overdue else shelf.shortest,
        tokens=situation.budget(instance.group),
        most=situation.share(shelf, instance.group),
        predict_ns=situation.costs[instance.group].predict_ns,
    )
    return Batch(entries, out_of_turn=overdue)


def _shelf(situation: Situation, instance: InstanceState) -> Shelf | None:
    """Return the lane to serve: singles, unless bulk is overdue and due before all of them; that every other time."""
    single, bulk = (situation.queue.shelf(lane, 0) for lane in LANES)
    if not single or not bulk:
        return single or bulk or None
    bulk_is_due = bulk.first.due_ns <= situation.now_ns and bulk.first.due_ns < single.first.due_ns
    return bulk if bulk_is_due and not instance.owes_turn else single


_POLICIES: Final[Mapping[Policy, Callable[[Situation, InstanceState], Batch | Rest]]] = {
    "smart": choose_smart,
    "fifo": _choose_fifo,
    "shortest-first": _choose_shortest,
}
