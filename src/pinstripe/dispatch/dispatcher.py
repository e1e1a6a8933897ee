"""Requests on their way into an executor, and out of it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pinstripe.configuration import DispatchRule, InstanceGroup, group_of
from pinstripe.dispatch.choice import Batch
from pinstripe.dispatch.cost_model import CostModel
from pinstripe.dispatch.entry import Entry
from pinstripe.dispatch.open_request import OpenRequest, answer
from pinstripe.dispatch.policies import choose
from pinstripe.dispatch.queue import Queue
from pinstripe.dispatch.request import Lane, Reply, Request
from pinstripe.dispatch.situation import InstanceState, Situation
from pinstripe.dispatch.warmup import WarmedUp, warm_up
from pinstripe.errors import ConfigurationError, ExpiredError, WorkerDiedError, WorkerError, WorkerHungError
from pinstripe.models import EncodedText, TokenBatch
from pinstripe.pool import BatchResult, Executor

__all__ = ["Dispatcher", "loop_time_ns"]

_USUAL_PATIENCE: Final = 6.0
"""What a text waits, in times of its own: those who ask for more work expect to wait longer for it. Below 4 short texts
lose half of what classes bring them when the load is high; above 6 they gain little more, and long ones wait (simulated
with `benchmarks/dispatch.py`).
"""
_LEAST_PATIENCE_NS: Final = 50_000_000.0
_LOOK_AGAIN_NS: Final = 100_000_000
"""How often to see whether an instance that was not available has become so."""


def loop_time_ns() -> int:
    """Return the event loop's time: on Linux that of `time.monotonic_ns`, under simulation the virtual one."""
    return round(asyncio.get_running_loop().time() * 1e9)


@dataclass(slots=True, eq=False)
class _Ready:
    """A batch that runs as it is."""

    batch: TokenBatch
    future: asyncio.Future[BatchResult]


class Dispatcher:
    """Decides which texts run together, when, and on which instance. Used from one event loop.

    Idle instances pull: whenever something comes or ends, each idle one is asked what it does next, see `choose`. Each
    instance has one batch at a time. As an `Executor` it takes ready batches, which it runs as they are, in the bulk
    lane.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        pad: Callable[[Sequence[EncodedText]], TokenBatch],
        rule: DispatchRule,
        groups: Sequence[InstanceGroup] = (),
    ) -> None:
        """Begin with nothing to do.

        Args:
            executor: Has the instances, those of the first group first; is not closed by this.
            pad: Makes a batch of texts.
            rule: How to go about it.
            groups: Which instances are for which lengths; none if all are alike.

        Raises:
            ConfigurationError: The groups are not those of the executor.
        """
        self._groups = tuple(groups) or (InstanceGroup(instances=executor.capacity, cores=1),)
        if sum(group.instances for group in self._groups) != executor.capacity:
            raise ConfigurationError(
                f"the groups have {sum(group.instances for group in self._groups)} instances, "
                f"but {executor.capacity} are there; name groups of as many"
            )
        self._executor = executor
        self._pad = pad
        self._rule = rule
        self._costs = tuple(CostModel(cores=group.cores) for group in self._groups)
        self._instances = tuple(
            InstanceState(group=index) for index, group in enumerate(self._groups) for _ in range(group.instances)
        )
        self._queue = Queue(len(self._groups) if rule.policy == "smart" else 1)
        self._next_number = 0
        self._requests: dict[int, OpenRequest] = {}
        self._ready: dict[int, _Ready] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._pump_is_due = False
        self._left = 0
        self._closed = False

    @property
    def capacity(self) -> int:
        """Number of instances."""
        return self._executor.capacity

    @property
    def costs(self) -> tuple[CostModel, ...]:
        """What batches cost in each group, as far as is known."""
        return self._costs

    @property
    def waiting(self) -> int:
        """Number of texts and ready batches that wait for an instance."""
        return len(self._queue)

    def available(self, instance: int) -> bool:
        """See `Executor.available`."""
        return self._executor.available(instance)

    async def request(self, request: Request) -> Reply:
        """Run a request's texts and return their results; if the caller is cancelled, what still waits is dropped.

        Raises:
            ExpiredError: Its deadline passed before all of its texts had begun.
            WorkerError: A batch could not be run, or the dispatcher was closed.
        """
        self._check_open()
        numbers = self._new_numbers(len(request.rows))
        one = OpenRequest(request, numbers, asyncio.get_running_loop().create_future())
        try:
            for number, row in zip(numbers, request.rows, strict=True):
                self._requests[number] = one
                self._enqueue(number, len(row), request.lane, request.arrival_ns, request.deadline_ns)
            self._pump_soon()
            return await one.future
        finally:
            if one.missing:
                self._withdraw(one)

    async def submit(self, batch: TokenBatch, *, instance: int | None = None) -> BatchResult:
        """Run a ready batch, in the bulk lane; see `Executor.submit`. With `instance` given it does not wait here."""
        self._check_open()
        if instance is not None:
            return await self._executor.submit(batch, instance=instance)
        (number,) = self._new_numbers(1)
        ready = _Ready(batch, asyncio.get_running_loop().create_future())
        self._ready[number] = ready
        self._enqueue(number, batch.sequence_length, "bulk", loop_time_ns(), None, texts=batch.size)
        self._pump_soon()
        try:
            return await ready.future
        finally:
            if self._queue.remove(number):
                del self._ready[number]

    async def warm_up(self, rows: Sequence[EncodedText], limit_s: float) -> WarmedUp:
        """Run short, usual and long texts on every instance until times have settled, and learn from these.

        Args:
            rows: Texts such as will come; at least one.
            limit_s: Most seconds.

        Raises:
            WorkerError: An instance failed.
        """
        groups = [one.group for one in self._instances]
        budgets = [self._rule.tokens * group.cores for group in self._groups]
        return await warm_up(
            self._executor, rows, self._pad, groups=groups, budgets=budgets, costs=self._costs, limit_s=limit_s
        )

    async def close(self) -> None:
        """Fail what waits and give up what runs; the executor stays as it is. Idempotent."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        # First of all, so that nobody waits for ever if closing is cancelled.
        for number in (*reversed(self._requests), *reversed(self._ready)):  # the last first, as of what has expired
            self._queue.remove(number)
            self._fail(number, WorkerError("the dispatcher was closed before the batch ran"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _new_numbers(self, count: int) -> range:
        first = self._next_number
        self._next_number += count
        return range(first, self._next_number)

    def _check_open(self) -> None:
        if self._closed:
            raise WorkerError("the dispatcher is closed; make a new one")

    def _enqueue(
        self, number: int, tokens: int, lane: Lane, arrival_ns: int, deadline_ns: int | None, *, texts: int = 0
    ) -> None:
        group = group_of(self._groups, tokens)
        takes_ns = self._costs[group].predict_ns(max(1, texts), tokens)
        due_ns = arrival_ns + round(self._patience_ns(lane, takes_ns))
        if deadline_ns is not None and self._rule.policy != "fifo":
            # Early enough that a batch which has just begun and its own both end before.
            due_ns = min(due_ns, deadline_ns - round(2 * takes_ns))
        entry = Entry(number, tokens, arrival_ns, due_ns, deadline_ns, lane, texts)
        self._queue.add(entry, group if self._rule.policy == "smart" else 0)

    def _patience_ns(self, lane: Lane, takes_ns: float) -> float:
        if lane == "bulk":
            return self._rule.bulk_patience_ms * 1e6
        if self._rule.patience_ms is not None:
            return self._rule.patience_ms * 1e6
        if self._rule.policy == "fifo":  # the same for all, so that what is due first has come first
            return _LEAST_PATIENCE_NS
        return max(_LEAST_PATIENCE_NS, _USUAL_PATIENCE * takes_ns)

    def _pump_soon(self) -> None:
        """Give out work once all that comes or ends at this moment is known."""
        if not self._pump_is_due and not self._closed:
            self._pump_is_due = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Ask every idle instance what it does next, until all that are idle rest."""
        self._pump_is_due = False
        if self._closed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_ns = loop_time_ns()
        self._drop_expired(now_ns)
        for index, one in enumerate(self._instances):
            one.available = self._executor.available(index)
        situation = Situation(now_ns, self._queue, self._instances, self._groups, self._costs, self._rule)
        times: list[int] = []
        given = True
        while given and len(self._queue):
            given, times = False, []
            for index, one in enumerate(self._instances):
                if one.idle and len(self._queue):
                    choice = choose(situation, one)
                    if isinstance(choice, Batch):
                        self._give(index, choice, now_ns)
                        given = True
                    elif choice.until_ns is not None:
                        times.append(choice.until_ns)
        if len(self._queue):
            self._rest(now_ns, times)

    def _rest(self, now_ns: int, times: list[int]) -> None:
        """Look again when an instance that rests wants to, or one that was not available may be."""
        if (deadline_ns := self._queue.first_deadline_ns) is not None:
            times = [*times, deadline_ns + 1]
        if not all(one.available for one in self._instances):
            times = [*times, now_ns + _LOOK_AGAIN_NS]
        if not any(one.available for one in self._instances) and not self._left:
            self._leave_one()
        if times:
            delay_s = max(0, min(times) - now_ns) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._pump)

    def _leave_one(self) -> None:
        """Leave what is due first to the executor: it knows whether an instance will come back.

        No more than one at a time: when instances are back, what waits here can still be batched.
        """
        for lane in ("single", "bulk"):
            for shelf in self._queue.lane(lane):
                if shelf:
                    self._run((shelf.first,), None)
                    return

    def _give(self, index: int, batch: Batch, now_ns: int) -> None:
        one = self._instances[index]
        texts = sum(max(1, entry.texts) for entry in batch.entries)
        tokens = max(entry.tokens for entry in batch.entries)
        one.began_ns = now_ns
        one.expected_ns = now_ns + round(self._costs[one.group].predict_ns(texts, tokens))
        one.owes_turn = batch.out_of_turn
        self._run(batch.entries, index)

    def _run(self, entries: Sequence[Entry], index: int | None) -> None:
        for entry in entries:
            self._queue.remove(entry.number)
        task = asyncio.get_running_loop().create_task(self._run_batch(entries, index))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_batch(self, entries: Sequence[Entry], index: int | None) -> None:
        """Run a batch; if its instance dies or hangs, once more on another."""
        self._left += index is None
        held = index
        try:
            batch = self._batch(entries)
            try:
                result = await self._executor.submit(batch, instance=index)
            except (WorkerDiedError, WorkerHungError):
                if index is None:
                    raise
                self._release(index)
                held = None
                result = await self._executor.submit(batch, instance=self._other_than(index))
            else:
                self._learn(index, batch, result)
            self._answer(entries, batch, result)
        except asyncio.CancelledError:
            if self._closed:
                raise
            self._fail_all(entries, WorkerError("the executor has given the batch up; send it again"))
        except Exception as error:  # noqa: BLE001 - whoever waits gets it, whatever it is
            self._fail_all(entries, error)
        finally:
            self._left -= index is None
            self._release(held)

    def _release(self, index: int | None) -> None:
        if index is not None:
            self._instances[index].began_ns = None
        self._pump_soon()

    def _other_than(self, index: int) -> int | None:
        """Return an instance that is there, and not that one; None if there is none."""
        others = (one for one in range(self.capacity) if one != index and self._executor.available(one))
        return next(others, None)

    def _learn(self, index: int | None, batch: TokenBatch, result: BatchResult) -> None:
        if index is not None:
            duration_ns = result.timing.finished_ns - result.timing.started_ns
            self._costs[self._instances[index].group].observe(batch.size, batch.sequence_length, duration_ns)

    def _batch(self, entries: Sequence[Entry]) -> TokenBatch:
        if entries[0].number in self._ready:
            return self._ready[entries[0].number].batch
        return self._pad([self._requests[entry.number].row(entry.number) for entry in entries])

    def _answer(self, entries: Sequence[Entry], batch: TokenBatch, result: BatchResult) -> None:
        ready = self._ready.pop(entries[0].number, None)
        if ready is not None:
            if not ready.future.done():
                ready.future.set_result(result)
            return
        numbers = [entry.number for entry in entries]
        answer(self._requests, numbers, batch, result, loop_time_ns())
        for number in numbers:
            del self._requests[number]

    def _fail(self, number: int, error: Exception) -> None:
        if (request := self._requests.pop(number, None)) is not None:
            request.fail(error)
        if (ready := self._ready.pop(number, None)) is not None and not ready.future.done():
            ready.future.set_exception(error)

    def _fail_all(self, entries: Sequence[Entry], error: Exception) -> None:
        for entry in entries:
            self._fail(entry.number, error)

    def _withdraw(self, request: OpenRequest) -> None:
        """Drop what of a request still waits."""
        for number in reversed(request.numbers):
            if self._queue.remove(number):
                del self._requests[number]

    def _drop_expired(self, now_ns: int) -> None:
        for number in self._queue.expired(now_ns):
            request = self._requests.get(number)
            if request is None:  # went with another text of its request
                continue
            late_ms = (now_ns - request.request.arrival_ns) / 1e6
            self._withdraw(request)
            request.fail(
                ExpiredError(f"the deadline passed after {late_ms:.0f} ms of waiting; allow more, or send less")
            )
