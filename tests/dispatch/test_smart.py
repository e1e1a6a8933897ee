"""Decisions, one at a time; costs are 1 ms + 0.1 ms a token on one core, exactly known."""

from collections.abc import Sequence

import pytest

from pinstripe.configuration import DispatchRule, InstanceGroup
from pinstripe.dispatch import Batch, CostModel, Entry, InstanceState, Queue, Rest, Situation, choose

MS = 1_000_000
NOW = 1_000 * MS
TWO = (InstanceGroup(instances=1, cores=1, max_tokens=32), InstanceGroup(instances=1, cores=1))
_SHORT, _LONG = 10, 200  # 2 ms and 21 ms


class _Known(CostModel):
    """A model that knows."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__()
        self._coefficients = (1.0 * MS / speed, 0.1 * MS / speed, 0.0)


def _situation(
    waiting: Sequence[Entry],
    *busy_for_ms: float | None,
    groups: Sequence[InstanceGroup] = TWO,
    speeds: Sequence[float] = (1.0, 1.0),
) -> Situation:
    """`busy_for_ms` by instance, in the order of the groups: when its batch should end, None if it is idle."""
    queue = Queue(len(groups))
    for entry in waiting:
        queue.add(entry, 0 if entry.tokens <= (groups[0].max_tokens or 1 << 30) else 1)
    owners = [index for index, group in enumerate(groups) for _ in range(group.instances)]
    instances = [
        InstanceState(group=group)
        if busy is None
        else InstanceState(group=group, began_ns=NOW, expected_ns=NOW + round(busy * MS))
        for group, busy in zip(owners, busy_for_ms, strict=True)
    ]
    return Situation(NOW, queue, instances, groups, [_Known(speed) for speed in speeds], DispatchRule())


def _entry(number: int, tokens: int, waited_ms: float = 1.0, *, bulk: bool = False, patience_ms: float = 50.0) -> Entry:
    arrival_ns = NOW - round(waited_ms * MS)
    due_ns = arrival_ns + round((5000 if bulk else patience_ms) * MS)
    return Entry(number, tokens, arrival_ns, due_ns, lane="bulk" if bulk else "single")


def _numbers(choice: Batch | Rest) -> list[int]:
    assert isinstance(choice, Batch), choice
    return sorted(entry.number for entry in choice.entries)


def test_own_class_comes_first() -> None:
    """Each instance takes what is of its class, whatever came before."""
    waiting = [_entry(0, _LONG, 9.0), _entry(1, _SHORT, 1.0)]
    situation = _situation(waiting, None, None)

    assert _numbers(choose(situation, situation.instances[0])) == [1]
    assert _numbers(choose(situation, situation.instances[1])) == [0]


def test_class_in_use_declines_longer_work() -> None:
    """A document waits for its own instance although the other is idle: a query has come a moment ago."""
    situation = _situation([_entry(0, _LONG)], None, 20.0)
    situation.queue.add(_entry(1, _SHORT), 0)
    situation.queue.remove(1)

    choice = choose(situation, situation.instances[0])

    assert choice == Rest("kept for its own class", NOW + 49 * MS)  # it has waited for 1 of 50 ms


def test_class_out_of_use_helps() -> None:
    """Where no query has come within the patience, its instance takes the document: 21 ms here, 41 ms there."""
    situation = _situation([_entry(0, _LONG)], None, 20.0)

    assert _numbers(choose(situation, situation.instances[0])) == [0]


def test_overdue_work_is_not_declined() -> None:
    """After the patience any instance takes it, even before its own; then its own class has a turn."""
    waiting = [_entry(0, _LONG, 51.0), _entry(1, _LONG, 52.0), _entry(2, _SHORT)]
    situation = _situation(waiting, None, 25.0)

    first = choose(situation, situation.instances[0])
    assert isinstance(first, Batch)
    assert first.out_of_turn
    assert 2 not in _numbers(first)

    situation.instances[0].owes_turn = True
    assert _numbers(choose(situation, situation.instances[0])) == [2]


def test_one_idle_instance_is_kept_not_all() -> None:
    """Of two idle instances for queries one may take the document, one stays."""
    groups = (InstanceGroup(instances=2, cores=1, max_tokens=32), TWO[1])
    situation = _situation([_entry(0, _LONG)], None, None, 20.0, groups=groups)
    situation.queue.add(_entry(1, _SHORT), 0)
    situation.queue.remove(1)

    assert _numbers(choose(situation, situation.instances[0])) == [0]

    situation.instances[1].began_ns = NOW
    assert isinstance(choose(situation, situation.instances[0]), Rest)


def test_slow_instance_leaves_to_a_fast_one_what_ends_sooner_there() -> None:
    """8 times as fast and free in 5 ms, the large instance ends after 5 + 2.6 ms, the small one after 21 ms."""
    groups = (TWO[0], InstanceGroup(instances=1, cores=8))
    situation = _situation([_entry(0, _LONG)], None, 5.0, groups=groups, speeds=(1.0, 8.0))

    choice = choose(situation, situation.instances[0])

    assert isinstance(choice, Rest)
    assert choice.why == "sooner elsewhere"


def test_slow_instance_helps_at_the_end_of_a_long_queue() -> None:
    """With 20 documents of 2.6 ms before it, the last would end after 5 + 20 x 2.6 ms there, after 21 ms here."""
    groups = (TWO[0], InstanceGroup(instances=1, cores=8))
    waiting = [_entry(number, _LONG, 20.0 - number / 10) for number in range(20)]
    situation = _situation(waiting, None, 5.0, groups=groups, speeds=(1.0, 8.0))

    choice = choose(situation, situation.instances[0])

    assert 19 in _numbers(choice)
    assert 0 not in _numbers(choice)


def test_long_instance_lets_brief_work_pass_when_its_own_is_stuck() -> None:
    """A query before a document costs it 2 ms of 21; its own instance is busy for 20 ms more."""
    waiting = [_entry(0, _LONG), _entry(1, _SHORT)]

    stuck = _situation(waiting, 20.0, None)
    assert _numbers(choose(stuck, stuck.instances[1])) == [1]

    soon = _situation(waiting, 0.0, None, speeds=(1.0, 0.9))  # its own would begin at once, and be a little faster
    assert _numbers(choose(soon, soon.instances[1])) == [0]


def test_what_is_late_is_expected_to_take_as_long_again() -> None:
    """An instance 30 ms over its time will not be free now, but in 30 ms: the other one takes its query."""
    situation = _situation([_entry(0, _SHORT)], -30.0, None)

    assert _numbers(choose(situation, situation.instances[1])) == [0]


def test_single_texts_come_before_bulk() -> None:
    """Bulk waits behind single texts of any class, unless it is overdue."""
    waiting = [_entry(0, _SHORT, 500.0, bulk=True), _entry(1, _SHORT, 1.0)]
    situation = _situation(waiting, None, 20.0)
    assert _numbers(choose(situation, situation.instances[0])) == [1]

    overdue = _situation([_entry(0, _SHORT, 5001.0, bulk=True), _entry(1, _SHORT, 1.0)], None, 20.0)
    assert _numbers(choose(overdue, overdue.instances[0])) == [0]


def test_instances_that_are_not_there_are_helped() -> None:
    """While the only instance for documents is started again, the other takes them."""
    situation = _situation([_entry(0, _LONG)], None, None)
    situation.instances[1].available = False

    assert _numbers(choose(situation, situation.instances[0])) == [0]


@pytest.mark.parametrize(("idle", "expected"), [(1, 8), (2, 4), (4, 2)])
def test_idle_instances_share(idle: int, expected: int) -> None:
    """Eight queries and two idle instances make two batches of four, not one of eight."""
    groups = (InstanceGroup(instances=4, cores=1),)
    busy = [None] * idle + [20.0] * (4 - idle)
    situation = _situation([_entry(number, _SHORT) for number in range(8)], *busy, groups=groups, speeds=(1.0,))

    assert len(_numbers(choose(situation, situation.instances[0]))) == expected


@pytest.mark.parametrize(("policy", "expected"), [("fifo", [0, 1]), ("shortest-first", [1, 2]), ("smart", [0])])
def test_policies_differ_in_what_comes_first(policy: str, expected: list[int]) -> None:
    """Of 200, 12 and 8 tokens in this order: the oldest two (400 computed); the shortest two; the oldest alone."""
    groups = (InstanceGroup(instances=1, cores=1),)
    waiting = [_entry(0, 200, 9.0), _entry(1, 12, 8.0), _entry(2, 8, 7.0)]
    plain = _situation(waiting, None, groups=groups, speeds=(1.0,))
    rule = DispatchRule(policy=policy, tokens=512)  # type: ignore[arg-type] # a parametrized word
    situation = Situation(NOW, plain.queue, plain.instances, groups, plain.costs, rule)

    assert _numbers(choose(situation, situation.instances[0])) == expected
