"""Requests through a dispatcher, on a virtual clock."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from pinstripe.configuration import DispatchRule, InstanceGroup
from pinstripe.dispatch import Dispatcher, Request, loop_time_ns
from pinstripe.errors import ConfigurationError, ExpiredError, UsageError, WorkerDiedError, WorkerError
from pinstripe.models import EncodedText, TokenBatch
from pinstripe.pool import BatchResult
from pinstripe.simulate import SimulatedExecutor, SimulatedInstance, run_simulated

T = TypeVar("T")

MS = 1_000_000
TWO = (InstanceGroup(instances=1, cores=1, max_tokens=32), InstanceGroup(instances=1, cores=1))


def _cost(cores: int, texts: int, tokens: int) -> float:
    """1 ms and 0.1 ms a token, in seconds."""
    return (1e-3 + 1e-4 * texts * tokens) / cores


def _pad(rows: Sequence[EncodedText]) -> TokenBatch:
    lengths = np.array([len(row) for row in rows], dtype=np.int32)
    ids = np.zeros((len(rows), int(lengths.max())), np.int32)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row.ids
    return TokenBatch(ids, lengths)


def _row(tokens: int) -> EncodedText:
    return EncodedText(np.ones(tokens, np.int32))


class _Watched(SimulatedExecutor):
    """Notes what it is given, and fails where it is told to."""

    def __init__(self, instances: int, fails: Callable[[int | None], bool] = lambda _: False) -> None:
        super().__init__([SimulatedInstance(1)] * instances, _cost)
        self.given: list[tuple[int | None, int, int]] = []
        self._fails = fails

    async def submit(self, batch: TokenBatch, *, instance: int | None = None) -> BatchResult:
        self.given.append((instance, batch.size, batch.sequence_length))
        if self._fails(instance):
            raise WorkerDiedError("it died")
        return await super().submit(batch, instance=instance)


def _run(
    main: Callable[[Dispatcher, _Watched], Coroutine[Any, Any, T]],
    *,
    groups: Sequence[InstanceGroup] = TWO,
    rule: DispatchRule | None = None,
    fails: Callable[[int | None], bool] = lambda _: False,
) -> tuple[T, _Watched]:
    async def through() -> tuple[T, _Watched]:
        executor = _Watched(sum(group.instances for group in groups), fails)
        dispatcher = Dispatcher(executor, pad=_pad, rule=rule or DispatchRule(), groups=groups)
        try:
            return await main(dispatcher, executor), executor
        finally:
            await dispatcher.close()
            await executor.close()

    return run_simulated(through())


def test_request_of_many_texts_is_split_and_joined() -> None:
    """Texts of both classes run at the same time on both instances, and each gets its own result."""
    lengths = [10, 200, 11, 150, 9, 12]

    async def main(dispatcher: Dispatcher, _: _Watched) -> tuple[list[float], int]:
        reply = await dispatcher.request(Request(tuple(map(_row, lengths)), loop_time_ns()))
        found = [0.0] * len(lengths)
        for part in reply.parts:
            for text, value in zip(part.texts, part.outputs["output"][:, 0], strict=True):
                found[text] = float(value)
        return found, reply.done_ns

    (found, done_ns), executor = _run(main)

    assert found == lengths
    assert {instance for instance, _, _ in executor.given} == {0, 1}
    # The document instance: 21 ms and 16 ms; unless the other, when through with 12-token texts at 5.8 ms, helps.
    assert done_ns <= 37 * MS


def test_requests_of_several_callers_share_a_batch() -> None:
    """Texts that wait while the instance is busy run together, and each caller gets its own."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> list[float]:
        async def one(tokens: int) -> float:
            reply = await dispatcher.request(Request((_row(tokens),), loop_time_ns()))
            return float(reply.parts[0].outputs["output"][0, 0])

        first = asyncio.ensure_future(one(20))
        await asyncio.sleep(0.0001)
        others = await asyncio.gather(*(one(tokens) for tokens in (12, 13, 12, 14)))
        return [await first, *others]

    found, executor = _run(main, groups=(InstanceGroup(instances=1, cores=1),))

    assert found == [20, 12, 13, 12, 14]
    assert executor.given == [(0, 1, 20), (0, 4, 14)]


def test_cancelled_requests_do_not_run() -> None:
    """What still waits is dropped when its caller goes; what runs is not disturbed."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> int:
        loop = asyncio.get_running_loop()
        first = loop.create_task(dispatcher.request(Request((_row(200),), loop_time_ns())))
        await asyncio.sleep(0.001)
        others = [loop.create_task(dispatcher.request(Request((_row(200),), loop_time_ns()))) for _ in range(3)]
        await asyncio.sleep(0.001)
        for task in others:
            task.cancel()
        await asyncio.wait([first, *others])
        return dispatcher.waiting

    waiting, executor = _run(main, groups=(InstanceGroup(instances=1, cores=1),))

    assert waiting == 0
    assert executor.given == [(0, 1, 200)]


def test_expired_requests_do_not_run() -> None:
    """A request whose deadline has passed when its turn comes fails, all of its texts."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> str:
        first = asyncio.ensure_future(dispatcher.request(Request((_row(400),), loop_time_ns())))
        await asyncio.sleep(0.0001)
        late = Request((_row(300), _row(300)), loop_time_ns(), deadline_ns=loop_time_ns() + 10 * MS)
        with pytest.raises(ExpiredError) as error:
            await dispatcher.request(late)
        await first
        return str(error.value)

    message, executor = _run(main, groups=(InstanceGroup(instances=1, cores=1),))

    assert message == "the deadline passed after 10 ms of waiting; allow more, or send less"
    assert executor.given == [(0, 1, 400)]


def test_deadline_brings_a_request_forward() -> None:
    """Of two that wait, the later one runs first if it has to be ready sooner than the other is due."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> list[str]:
        order: list[str] = []

        async def one(name: str, tokens: int, deadline_ms: float | None = None) -> None:
            now_ns = loop_time_ns()
            deadline_ns = None if deadline_ms is None else now_ns + round(deadline_ms * MS)
            await dispatcher.request(Request((_row(tokens),), now_ns, deadline_ns))
            order.append(name)

        await dispatcher.warm_up([_row(100), _row(200), _row(300)], 1.0)
        first = asyncio.ensure_future(one("running", 100))
        await asyncio.sleep(0.001)
        await asyncio.gather(first, one("patient", 300), one("urgent", 200, 60.0))
        return order

    order, _ = _run(main, groups=(InstanceGroup(instances=1, cores=1),))

    assert order == ["running", "urgent", "patient"]


def test_batch_of_an_instance_that_dies_runs_elsewhere() -> None:
    """It is tried once more, on another one."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> int:
        return len((await dispatcher.request(Request((_row(10),), loop_time_ns()))).parts)

    parts, executor = _run(main, fails=lambda instance: instance == 0)

    assert parts == 1
    assert [instance for instance, _, _ in executor.given] == [0, 1]


def test_batch_that_fails_twice_fails_its_requests() -> None:
    """The callers get the error, and the dispatcher goes on."""

    async def main(dispatcher: Dispatcher, executor: _Watched) -> int:
        with pytest.raises(WorkerDiedError):
            await dispatcher.request(Request((_row(10), _row(200)), loop_time_ns()))
        executor._fails = lambda _: False
        return len((await dispatcher.request(Request((_row(10),), loop_time_ns()))).parts)

    parts, _ = _run(main, fails=lambda _: True)

    assert parts == 1


def test_ready_batches_go_by_their_class() -> None:
    """As an executor it runs batches as they are, each on the instance of its length while that is idle."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> list[int]:
        batches = [_pad([_row(200)] * 2), _pad([_row(10)] * 3)]
        results = await asyncio.gather(*(dispatcher.submit(batch) for batch in batches))
        assert [len(result.outputs["output"]) for result in results] == [2, 3]
        return [result.instance for result in results]

    instances, _ = _run(main)

    assert instances == [1, 0]


def test_warm_up_teaches_what_things_cost() -> None:
    """After it each group's model knows 1 ms and 0.1 ms a token, within 2 %."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> list[float]:
        warmed = await dispatcher.warm_up([_row(tokens) for tokens in (8, 30, 200)], 5.0)
        assert warmed.steady
        return [cost.predict_ns(4, 25) / MS for cost in dispatcher.costs]

    predicted, _ = _run(main)

    assert predicted == pytest.approx([11.0, 11.0], rel=0.02)


def test_a_batch_that_cannot_be_made_frees_its_instance() -> None:
    """Its requests get the error, and the next one runs."""
    broken = EncodedText(np.ones((2, 2), np.int32))  # cannot be put into a row of a batch

    async def main(dispatcher: Dispatcher, _: _Watched) -> int:
        with pytest.raises(ValueError, match="broadcast"):
            await dispatcher.request(Request((broken,), loop_time_ns()))
        return len((await asyncio.wait_for(dispatcher.request(Request((_row(10),), loop_time_ns())), 1)).parts)

    parts, _ = _run(main, groups=(InstanceGroup(instances=1, cores=1),))

    assert parts == 1


def test_closing_that_is_cancelled_leaves_nobody_waiting() -> None:
    """Whoever waits gets an error, even if closing has not come to its end."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> None:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(dispatcher.request(Request((_row(200),), loop_time_ns()))) for _ in range(3)]
        await asyncio.sleep(0.001)
        closing = loop.create_task(dispatcher.close())
        await asyncio.sleep(0)
        closing.cancel()
        for error in await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 1):
            assert isinstance(error, WorkerError)

    _run(main)


def test_an_executor_that_cancels_is_an_error_of_the_batch() -> None:
    """Its own cancelling is not taken for the caller's: nobody waits for ever."""

    def cancels(_: int | None) -> bool:
        raise asyncio.CancelledError

    async def main(dispatcher: Dispatcher, _: _Watched) -> None:
        with pytest.raises(WorkerError, match="given the batch up"):
            await asyncio.wait_for(dispatcher.request(Request((_row(10),), loop_time_ns())), 1)

    _run(main, fails=cancels)


def test_all_are_told_at_once_when_no_instance_is_left() -> None:
    """A thousand that wait for instances that will not come back do not fail one by one."""

    class _Gone(_Watched):
        def available(self, instance: int) -> bool:
            del instance
            return False

    async def main() -> float:
        dispatcher = Dispatcher(_Gone(1, lambda _: True), pad=_pad, rule=DispatchRule())
        began = asyncio.get_running_loop().time()
        asked = (dispatcher.request(Request((_row(10),), loop_time_ns())) for _ in range(1000))
        for error in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(error, WorkerDiedError)
        return asyncio.get_running_loop().time() - began

    assert run_simulated(main()) < 0.1


def test_warm_up_ends_with_its_first_failure() -> None:
    """The other instances get nothing more to do."""

    async def main(dispatcher: Dispatcher, executor: _Watched) -> int:
        with pytest.raises(WorkerDiedError):
            await dispatcher.warm_up([_row(10)], 60.0)
        given = len(executor.given)
        await asyncio.sleep(5)
        return len(executor.given) - given

    later, _ = _run(main, fails=lambda instance: instance == 1)

    assert later == 0


def test_fifo_is_by_arrival() -> None:
    """Neither length nor deadline lets one pass another."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> list[str]:
        order: list[str] = []

        async def one(name: str, tokens: int, deadline_ms: float | None = None) -> None:
            now_ns = loop_time_ns()
            deadline_ns = None if deadline_ms is None else now_ns + round(deadline_ms * MS)
            await dispatcher.request(Request((_row(tokens),), now_ns, deadline_ns))
            order.append(name)

        tasks = [asyncio.ensure_future(one("running", 100))]
        for name, tokens, deadline_ms in (("long", 400, None), ("short", 5, None), ("urgent", 100, 500.0)):
            await asyncio.sleep(0.001)
            tasks.append(asyncio.ensure_future(one(name, tokens, deadline_ms)))
        await asyncio.gather(*tasks)
        return order

    rule = DispatchRule(policy="fifo", tokens=1)
    order, _ = _run(main, groups=(InstanceGroup(instances=1, cores=1),), rule=rule)

    assert order == ["running", "long", "short", "urgent"]


@pytest.mark.parametrize(("rows", "lane"), [((), "single"), ((_row(3),), "express")])
def test_requests_that_could_never_be_answered_are_refused(rows: tuple[EncodedText, ...], lane: Any) -> None:
    """No text, or a lane that nobody serves."""
    with pytest.raises(UsageError):
        Request(rows, 0, lane=lane)


def test_closing_fails_what_waits() -> None:
    """Nobody waits for ever; afterwards nothing is taken any more."""

    async def main(dispatcher: Dispatcher, _: _Watched) -> None:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(dispatcher.request(Request((_row(200),), loop_time_ns()))) for _ in range(3)]
        await asyncio.sleep(0.001)
        await dispatcher.close()
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(error, WorkerError)
        with pytest.raises(WorkerError, match="closed"):
            await dispatcher.request(Request((_row(8),), loop_time_ns()))

    _run(main)


def test_groups_have_to_be_those_of_the_executor() -> None:
    """Three instances in the groups and two in the executor are a mistake of the caller."""
    with pytest.raises(ConfigurationError, match="3 instances, but 2 are there"):
        Dispatcher(_Watched(2), pad=_pad, rule=DispatchRule(), groups=(InstanceGroup(instances=3, cores=1),))
