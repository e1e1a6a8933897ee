"""What holds whatever comes, when, and however long it takes: on a virtual clock."""

import asyncio
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pinstripe.configuration import DispatchRule, InstanceGroup, Policy, group_of
from pinstripe.dispatch import Dispatcher, Lane, Reply, Request, loop_time_ns
from pinstripe.dispatch import dispatcher as dispatcher_module
from pinstripe.dispatch.choice import Batch, Rest
from pinstripe.dispatch.policies import choose
from pinstripe.dispatch.situation import InstanceState, Situation
from pinstripe.errors import ExpiredError
from pinstripe.models import EncodedText, TokenBatch
from pinstripe.pool import BatchResult, BatchTiming
from pinstripe.simulate import run_simulated

MS = 1_000_000
MOST_RESTS = 10_000
"""Of a scenario; some hundred are usual. Then the dispatcher stops, and the simulation says that all wait."""
POLICIES = pytest.mark.parametrize("policy", ["smart", "fifo", "shortest-first"])


@dataclass(frozen=True)
class Event:
    """A request that comes some time after the one before; of several texts and `ready`, a batch to run as it is."""

    gap_ns: int
    lengths: tuple[int, ...]
    lane: Lane = "single"
    deadline_ns: int | None = None
    cancel_ns: int | None = None
    ready: bool = False


@dataclass(frozen=True)
class Scenario:
    """Requests, instances, a rule, and the seed of what each batch takes."""

    events: tuple[Event, ...]
    groups: tuple[InstanceGroup, ...]
    tokens: int
    patience_ms: int
    bulk_patience_ms: int
    seed: int


@dataclass
class Text:
    """One that was sent, or a whole batch that runs as it is."""

    tokens: int
    arrival_ns: int
    event: Event
    started_ns: list[int] = field(default_factory=list)
    gone_ns: int | None = None

    def waits(self, now_ns: int) -> bool:
        """Whether it certainly waits: a moment after it came, and before it begins or goes."""
        until_ns = self.started_ns[0] if self.started_ns else self.gone_ns
        return self.arrival_ns < now_ns and (until_ns is None or now_ns < until_ns)


@dataclass
class Begun:
    """A batch that ran."""

    instance: int
    began_ns: int
    ended_ns: int
    texts: list[Text]
    size: int
    tokens: int


@dataclass
class Rested:
    """An instance that chose to do nothing."""

    now_ns: int
    instance: int
    rest: Rest
    group: int


class Machine:
    """Takes a random time for each batch, and notes which texts, named by their first token, ran when and where."""

    def __init__(self, scenario: Scenario, texts: dict[int, Text]) -> None:
        self.cores = [group.cores for group in scenario.groups for _ in range(group.instances)]
        self.begun: list[Begun] = []
        self._random = random.Random(scenario.seed)  # noqa: S311 - a test's own numbers
        self._texts = texts

    @property
    def capacity(self) -> int:
        """Number of instances."""
        return len(self.cores)

    def available(self, instance: int) -> bool:
        """Return whether there is such an instance."""
        return 0 <= instance < self.capacity

    async def submit(self, batch: TokenBatch, *, instance: int | None = None) -> BatchResult:
        """Sleep; return each text's first token."""
        assert instance is not None
        began_ns = loop_time_ns()
        taken_ns = (MS // 2 + 20_000 * batch.ids.size) / self.cores[instance]
        taken_ns *= self._random.choice([0.7, 1, 1, 1, 1.3, 6])
        texts = [self._texts[number] for number in batch.ids[:, 0].tolist() if number in self._texts]
        for text in texts:
            text.started_ns.append(began_ns)
        one = Begun(instance, began_ns, began_ns, texts, batch.size, batch.sequence_length)
        self.begun.append(one)
        await asyncio.sleep(round(taken_ns) / 1e9)
        one.ended_ns = loop_time_ns()
        timing = BatchTiming(began_ns, began_ns, round(taken_ns), one.ended_ns, one.ended_ns)
        return BatchResult({"output": batch.ids[:, :1]}, instance, timing)

    async def close(self) -> None:
        """Do nothing."""


@dataclass
class Story:
    """All that happened."""

    scenario: Scenario
    machine: Machine
    texts: dict[int, Text] = field(default_factory=dict)
    answered: int = 0
    expired: list[list[Text]] = field(default_factory=list)
    rests: list[Rested] = field(default_factory=list)
    left: int = 0

    def own(self, text: Text, policy: Policy) -> list[int]:
        """Return the instances of a text's class; there is but one class if the policy knows none."""
        groups = self.scenario.groups
        numbers = [index for index, group in enumerate(groups) for _ in range(group.instances)]
        if policy != "smart":
            return list(range(len(numbers)))
        return [index for index, group in enumerate(numbers) if group == group_of(groups, text.tokens)]

    def due_ns(self, text: Text) -> int:
        """Return when a text without a deadline has waited for as long as it should."""
        rule = self.scenario
        return text.arrival_ns + MS * (rule.patience_ms if text.event.lane == "single" else rule.bulk_patience_ms)

    def batches(self, instance: int) -> list[Begun]:
        """Return what ran on an instance, in turn."""
        return [one for one in self.machine.begun if one.instance == instance]


def pad(rows: Sequence[EncodedText]) -> TokenBatch:
    """Return a batch of texts."""
    lengths = np.array([len(row) for row in rows], dtype=np.int32)
    ids = np.zeros((len(rows), int(lengths.max())), dtype=np.int32)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row.ids
    return TokenBatch(ids, lengths)


def happens(scenario: Scenario, policy: Policy) -> Story:
    """Run a scenario to its end."""
    texts: dict[int, Text] = {}
    story = Story(scenario, Machine(scenario, texts), texts)
    rule = DispatchRule(
        policy=policy,
        tokens=scenario.tokens,
        patience_ms=scenario.patience_ms,
        bulk_patience_ms=scenario.bulk_patience_ms,
    )

    def watched(situation: Situation, instance: InstanceState) -> Batch | Rest:
        choice = choose(situation, instance)
        if len(story.rests) >= MOST_RESTS:
            raise RuntimeError("an instance that rests is asked again and again; time hardly moves")
        if isinstance(choice, Rest):
            index = next(index for index, one in enumerate(situation.instances) if one is instance)
            story.rests.append(Rested(situation.now_ns, index, choice, instance.group))
        return choice

    async def main() -> None:
        dispatcher = Dispatcher(story.machine, pad=pad, rule=rule, groups=scenario.groups)
        tasks = []
        numbers = itertools.count(1)
        for event in scenario.events:
            await asyncio.sleep(event.gap_ns / 1e9)
            own = [next(numbers) for _ in event.lengths]
            tasks.append(asyncio.create_task(sent(dispatcher, story, event, own)))
        await asyncio.gather(*tasks)
        await asyncio.sleep(10)  # whatever still runs for those who went
        story.left = dispatcher.waiting
        await dispatcher.close()

    with patch.object(dispatcher_module, "choose", watched):
        run_simulated(main())
    return story


async def sent(dispatcher: Dispatcher, story: Story, event: Event, numbers: list[int]) -> None:
    """Send a request, perhaps give up on it, and note what came of it."""
    now_ns = loop_time_ns()
    rows = [EncodedText(np.full(size, name, np.int32)) for size, name in zip(event.lengths, numbers, strict=True)]
    if event.ready:  # one thing to wait for, that has the name of its first text
        own = {numbers[0]: Text(max(event.lengths), now_ns, event)}
    else:
        own = {number: Text(len(row), now_ns, event) for number, row in zip(numbers, rows, strict=True)}
    story.texts.update(own)
    deadline_ns = None if event.deadline_ns is None else now_ns + event.deadline_ns
    request = Request(tuple(rows), now_ns, deadline_ns, event.lane)
    task: asyncio.Task[Reply] | asyncio.Task[BatchResult]
    if event.ready:
        task = asyncio.create_task(dispatcher.submit(pad(rows)))
    else:
        task = asyncio.create_task(dispatcher.request(request))
    if event.cancel_ns is not None:
        asyncio.get_running_loop().call_later(event.cancel_ns / 1e9, task.cancel)
    try:
        result = await task
    except asyncio.CancelledError:
        _note_gone(own)
    except ExpiredError:
        _note_gone(own)
        story.expired.append(list(own.values()))
    else:
        assert (_joined(result) if isinstance(result, Reply) else _names(result.outputs)) == numbers
        story.answered += 1


def _note_gone(texts: dict[int, Text]) -> None:
    for text in texts.values():
        text.gone_ns = loop_time_ns()


def _joined(reply: Reply) -> list[int]:
    """Return the result of each text, in their order."""
    assert reply.done_ns == loop_time_ns()
    assert all(np.all(np.diff(part.texts) > 0) for part in reply.parts)
    places = [place for part in reply.parts for place in part.texts.tolist()]
    names = [name for part in reply.parts for name in _names(part.outputs)]
    assert sorted(places) == list(range(len(names)))
    return [name for _, name in sorted(zip(places, names, strict=True))]


def _names(outputs: dict[str, NDArray[Any]]) -> list[int]:
    return [int(name) for name in outputs["output"][:, 0]]


GROUPS = st.sampled_from(
    [
        (InstanceGroup(instances=1, cores=1),),
        (InstanceGroup(instances=3, cores=1),),
        (InstanceGroup(instances=1, cores=1, max_tokens=32), InstanceGroup(instances=1, cores=1)),
        (InstanceGroup(instances=2, cores=1, max_tokens=32), InstanceGroup(instances=1, cores=4)),
        (
            InstanceGroup(instances=2, cores=1, max_tokens=16),
            InstanceGroup(instances=1, cores=2, max_tokens=64),
            InstanceGroup(instances=2, cores=4),
        ),
    ]
)


def events(*, leaves: bool) -> st.SearchStrategy[Event]:
    """Return events; those that leave have a deadline, or are given up."""
    short, long = st.integers(1, 24), st.integers(25, 400)
    lengths = st.lists(st.one_of(short, short, long), min_size=1, max_size=5).map(tuple)
    gaps = st.sampled_from([0, 0, 100_000, MS, 3 * MS, 20 * MS])
    times = st.none() | st.integers(0, 30 * MS) if leaves else st.none()
    lanes = st.sampled_from(["single", "single", "bulk"])
    requests = st.builds(
        Event, gap_ns=gaps, lengths=lengths, lane=lanes, deadline_ns=times, cancel_ns=times, ready=st.just(value=False)
    )
    ready = st.builds(
        Event, gap_ns=gaps, lengths=lengths, lane=st.just("bulk"), cancel_ns=times, ready=st.just(value=True)
    )
    return st.one_of(requests, requests, ready)


def busy(seed: int) -> tuple[Event, ...]:
    """Return so many requests that all instances have work for long."""
    source = random.Random(seed)  # noqa: S311 - a test's own numbers
    bulk = source.choice([0, 0.1, 0.5])
    long = source.choice([0.05, 0.3])
    gap_ns = source.choice([100_000, MS])
    return tuple(
        Event(
            source.randrange(2 * gap_ns),
            (source.randint(25, 400) if source.random() < long else source.randint(1, 24),),
            "bulk" if source.random() < bulk else "single",
        )
        for _ in range(100)
    )


def scenarios(*, leaves: bool = False) -> st.SearchStrategy[Scenario]:
    """Return scenarios, with requests that leave before they are answered or without."""
    listed = st.lists(events(leaves=leaves), min_size=1, max_size=40).map(tuple)
    return st.builds(
        Scenario,
        events=listed if leaves else st.one_of(listed, st.integers(0, 1 << 20).map(busy)),
        groups=GROUPS,
        tokens=st.sampled_from([1, 64, 512]),
        patience_ms=st.sampled_from([1, 5, 500]),
        bulk_patience_ms=st.sampled_from([1, 20, 5000]),
        seed=st.integers(0, 1 << 20),
    )


TRIED = settings(
    deadline=None,
    max_examples=15,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes longer than a test may
    suppress_health_check=[HealthCheck.too_slow],
)


@POLICIES
@TRIED
@given(scenario=scenarios())
def test_everyone_gets_their_own_and_everything_runs_once(policy: Policy, scenario: Scenario) -> None:
    """Each request is answered with the results of its own texts in their order; each text is in one batch."""
    story = happens(scenario, policy)

    assert story.answered == len(scenario.events)
    assert all(len(text.started_ns) == 1 for text in story.texts.values())
    assert story.left == 0


@POLICIES
@TRIED
@given(scenario=scenarios(leaves=True))
def test_who_leaves_leaves_nothing(policy: Policy, scenario: Scenario) -> None:
    """No text begins after its deadline, or after who wanted it has gone, or twice; nothing stays in the queue.

    A request expires only if one of its texts had not begun by its deadline.
    """
    story = happens(scenario, policy)

    assert story.left == 0
    for text in story.texts.values():
        assert len(text.started_ns) <= 1
        for started_ns in text.started_ns:
            assert text.event.deadline_ns is None or started_ns < text.arrival_ns + text.event.deadline_ns
            assert text.gone_ns is None or started_ns <= text.gone_ns
    for texts in story.expired:
        assert any(not text.started_ns for text in texts)
        assert all(text.gone_ns is not None and text.gone_ns >= _deadline_ns(text) for text in texts)


def _deadline_ns(text: Text) -> int:
    assert text.event.deadline_ns is not None
    return text.arrival_ns + text.event.deadline_ns


@POLICIES
@TRIED
@given(scenario=scenarios())
def test_batches_keep_to_the_budget(policy: Policy, scenario: Scenario) -> None:
    """Texts times padded length are at most the tokens for each core; more has only a single text, or a ready batch.

    An instance runs one batch at a time.
    """
    story = happens(scenario, policy)

    for one in story.machine.begun:
        if not one.texts[0].event.ready:
            assert one.size == 1 or one.size * one.tokens <= scenario.tokens * story.machine.cores[one.instance]
    for instance in range(story.machine.capacity):
        for before, after in itertools.pairwise(story.batches(instance)):
            assert before.ended_ns <= after.began_ns


@POLICIES
@TRIED
@given(scenario=scenarios())
def test_no_instance_of_its_class_is_idle_while_a_text_waits(policy: Policy, scenario: Scenario) -> None:
    """Instances never wait to fill a batch. Without classes none is idle while anything waits."""
    story = happens(scenario, policy)

    for text in story.texts.values():
        for instance in story.own(text, policy):
            for since_ns, until_ns in _pauses(story.batches(instance)):
                assert not max(since_ns, text.arrival_ns) < min(until_ns, text.started_ns[0])


def _pauses(batches: Sequence[Begun]) -> Iterator[tuple[int, int]]:
    ends = [0, *(one.ended_ns for one in batches)]
    begins = [*(one.began_ns for one in batches), 1 << 62]
    return zip(ends, begins, strict=True)


@TRIED
@given(scenario=scenarios())
def test_whoever_rests_has_said_why(scenario: Scenario) -> None:
    """An instance is idle while something waits only if `smart` said that it declines, and when to ask again.

    It is kept for its own class only where there is a longer one, and where a single text that is not longer than its
    own came within the patience of what it declines.
    """
    story = happens(scenario, "smart")
    declared = {(one.now_ns, one.instance) for one in story.rests}

    for rested in story.rests:
        assert rested.rest.until_ns is not None
        assert rested.rest.until_ns > rested.now_ns
        if rested.rest.why == "kept for its own class":
            most = scenario.groups[rested.group].max_tokens
            assert most is not None
            since_ns = rested.now_ns - max(scenario.patience_ms, scenario.bulk_patience_ms) * MS
            assert any(
                text.tokens <= most and text.event.lane == "single" and since_ns <= text.arrival_ns <= rested.now_ns
                for text in story.texts.values()
            )
    for instance in range(story.machine.capacity):
        for since_ns, until_ns in _pauses(story.batches(instance)):
            waited = [text for text in story.texts.values() if since_ns <= text.arrival_ns < until_ns]
            for text in waited:
                if text.started_ns[0] > text.arrival_ns:
                    assert (text.arrival_ns, instance) in declared


@POLICIES
@TRIED
@given(scenario=scenarios())
def test_what_is_overdue_gets_every_other_turn(policy: Policy, scenario: Scenario) -> None:
    """No two batches in a row begin on an instance of its class that have nothing that was due as early as it.

    So whatever waits, of any lane and class, has its turn after twice the batches of what was due before it, and one.
    """
    story = happens(scenario, policy)

    for text in story.texts.values():
        for instance in story.own(text, policy):
            passed_over = [
                min(map(story.due_ns, one.texts)) > story.due_ns(text)
                for one in story.batches(instance)
                if text.waits(one.began_ns) and one.began_ns > story.due_ns(text)
            ]
            assert (True, True) not in itertools.pairwise(passed_over)


@POLICIES
@TRIED
@given(scenario=scenarios())
def test_bulk_has_at_most_every_other_turn_while_a_single_text_waits(policy: Policy, scenario: Scenario) -> None:
    """No two batches of the bulk lane in a row begin on an instance of its class, and none that is not overdue."""
    story = happens(scenario, policy)

    for text in story.texts.values():
        if text.event.lane == "single":
            for instance in story.own(text, policy):
                during = [one for one in story.batches(instance) if text.waits(one.began_ns)]
                bulk = [one.texts[0].event.lane == "bulk" for one in during]
                assert (True, True) not in itertools.pairwise(bulk)
                for one in during:
                    first_due_ns = min(map(story.due_ns, one.texts))
                    assert one.texts[0].event.lane == "single" or first_due_ns <= one.began_ns
