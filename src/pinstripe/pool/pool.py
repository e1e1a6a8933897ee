"""N workers on this host as one executor."""

import asyncio
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Final, Self

from pinstripe.engines import engine
from pinstripe.errors import ConfigurationError, PinstripeError, UsageError, WorkerError
from pinstripe.models import TokenBatch
from pinstripe.pool.evidence import InstanceEvidence, gather_evidence
from pinstripe.pool.executor import BatchResult
from pinstripe.pool.instance import Instance
from pinstripe.pool.job import Job
from pinstripe.pool.spec import WorkerSpec

__all__ = ["Pool"]

_TICK_S: Final = 0.5
_SUSPENDED_ABOVE_S: Final = 2.0
"""A tick that takes longer means that this process did not run meanwhile."""
_FIRST_BACK_OFF_S: Final = 0.5
_LONGEST_BACK_OFF_S: Final = 30.0
_MOST_DEATHS: Final = 6
"""Deaths in a row, without a batch in between, after which an instance is given up."""
_LOAD_S: Final = 600.0
_COMPILE_S: Final = 2700.0
"""As long as others wait for the one that compiles, see `build_once`."""


class Pool:
    """An `Executor` of pinned worker processes. Used from one event loop; leaves no process behind.

    Attributes:
        suspended_s: Seconds in which this process seems to have been suspended since the pool was opened.
    """

    def __init__(
        self, specs: Sequence[WorkerSpec], *, restart: bool = True, load_timeout_s: float | None = None
    ) -> None:
        """Describe a pool; entering it as a context, or `open`, starts it.

        Args:
            specs: One worker each, at least one.
            restart: Whether a worker that ended is started again, with growing pauses; if not, its batches fail.
            load_timeout_s: Time that a worker has to get ready; None for 10 minutes, or 45 where the engine may compile
                the network first.

        Raises:
            ConfigurationError: There is no specification.
        """
        if not specs:
            raise ConfigurationError("a pool of no workers can run nothing; give it at least one")
        self._specs = tuple(specs)
        self._restart = restart
        self._load_timeout_s = load_timeout_s
        self._instances: list[Instance] = []
        self._shared: deque[Job] = deque()
        self._own: list[deque[Job]] = [deque() for _ in self._specs]
        self._deaths = [0] * len(self._specs)
        self._given_up: dict[int, WorkerError] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.suspended_s = 0.0

    async def open(self) -> None:
        """Start all workers and wait until each has loaded its model.

        Raises:
            StartError: One could not be started; all are stopped.
            EngineError: The engine refuses what was asked.
        """
        opening = [asyncio.ensure_future(self._open_instance(index)) for index in range(self.capacity)]
        try:
            self._instances = await asyncio.gather(*opening)
        except BaseException:
            for task in opening:
                task.cancel()
            opened = await asyncio.gather(*opening, return_exceptions=True)
            await asyncio.gather(*(one.close() for one in opened if isinstance(one, Instance)))
            raise
        self._keep(self._watch())

    @property
    def capacity(self) -> int:
        """Number of instances."""
        return len(self._specs)

    def available(self, instance: int) -> bool:
        """See `Executor.available`."""
        return bool(self._instances) and self._instances[instance].ready

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The instances, by index."""
        return tuple(self._instances)

    async def submit(self, batch: TokenBatch, *, instance: int | None = None) -> BatchResult:
        """Run a batch; see `Executor.submit`.

        Without `instance`, a batch whose worker died or hung is run once more on another instance.

        Raises:
            WorkerError: The batch could not be run, or the pool is not open.
            ConfigurationError: There is no instance of that index.
        """
        if self._closed:
            raise WorkerError("the pool is closed; open a new one")
        if not self._instances:
            raise WorkerError("the pool is not open yet; enter it with `async with`, or await open()")
        if instance is not None and not 0 <= instance < self.capacity:
            raise ConfigurationError(f"there is no instance {instance}; use 0 to {self.capacity - 1}")
        job = Job(batch, asyncio.get_running_loop().create_future(), time.monotonic_ns(), instance)
        self._enqueue(job)
        return await job.future

    async def evidence(self) -> list[InstanceEvidence]:
        """Return what took effect in each instance, read from the worker and from the kernel.

        Raises:
            WorkerError: A worker ended meanwhile.
        """
        return [await gather_evidence(instance) for instance in self._instances]

    async def close(self) -> None:
        """Stop all workers; batches that wait or run fail. Idempotent."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(instance.close() for instance in self._instances))
        self._fail_waiting(WorkerError("the pool was closed before the batch ran"))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _open_instance(self, index: int) -> Instance:
        return await Instance.open(
            index,
            self._specs[index],
            load_timeout_s=self._load_timeout_s or _load_timeout_s(self._specs[index]),
            on_room=self._feed,
            on_death=self._mourn,
        )

    def _enqueue(self, job: Job) -> None:
        """Give a job to an instance with room, or let it wait."""
        if job.instance is not None:
            if job.instance in self._given_up:
                job.fail(self._given_up[job.instance])
                return
            self._own[job.instance].append(job)
            self._feed(self._instances[job.instance])
            return
        if len(self._given_up) == self.capacity:
            job.fail(next(iter(self._given_up.values())))
            return
        self._shared.append(job)
        free = [instance for instance in self._instances if instance.has_room]
        if free:
            self._feed(min(free, key=lambda instance: len(instance.jobs)))

    def _feed(self, instance: Instance) -> None:
        """Give an instance what waits for it, as long as it has room."""
        own = self._own[instance.index]
        while instance.has_room:
            if own:
                job = own.popleft()
            elif (found := self._next_shared(instance)) is not None:
                job = found
            else:
                return
            if not job.future.done():
                instance.take(job)

    def _next_shared(self, instance: Instance) -> Job | None:
        for position, job in enumerate(self._shared):
            if self._may_run(job, instance):
                del self._shared[position]
                return job
        return None

    def _may_run(self, job: Job, instance: Instance) -> bool:
        """An instance that died over a job does not get it again, unless it is the only one left."""
        return job.avoid != instance.index or len(self._given_up) >= self.capacity - 1

    def _mourn(self, instance: Instance, error: WorkerError, jobs: deque[Job]) -> None:
        """An instance has ended: decide about its batches and its successor."""
        running = jobs[0] if jobs else None
        for job in reversed(jobs):
            if not self._restart or job.instance is not None or (job is running and job.avoid is not None):
                job.fail(error)
                continue
            if job is running:
                job.avoid = instance.index
            self._shared.appendleft(job)
        if self._restart and not self._closed:
            self._deaths[instance.index] = 1 if instance.batches_done else self._deaths[instance.index] + 1
            self._keep(self._revive(instance.index, error))
            self._feed_all()
        else:
            self._give_up(instance.index, error)

    def _give_up(self, index: int, error: WorkerError) -> None:
        self._given_up[index] = error
        for job in self._own[index]:
            job.fail(error)
        self._own[index].clear()
        if len(self._given_up) == self.capacity:
            self._fail_waiting(error)
        self._feed_all()  # what avoided the last instance that is left may have to run there now

    def _feed_all(self) -> None:
        for instance in self._instances:
            self._feed(instance)

    async def _revive(self, index: int, error: WorkerError) -> None:
        """Start an instance's successor, after a pause that doubles with each death in a row."""
        while self._deaths[index] < _MOST_DEATHS:
            await asyncio.sleep(min(_LONGEST_BACK_OFF_S, _FIRST_BACK_OFF_S * 2 ** (self._deaths[index] - 1)))
            try:
                successor = await self._open_instance(index)
            except UsageError as refusal:
                error = WorkerError(f"instance {index} cannot be started again: {refusal}")
                break
            except PinstripeError:
                self._deaths[index] += 1
                continue
            self._instances[index] = successor
            self._feed(successor)
            return
        self._give_up(index, error)

    async def _watch(self) -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(_TICK_S)
            now = time.monotonic()
            self.suspended_s += max(0.0, now - before - _SUSPENDED_ABOVE_S)
            for instance in self._instances:
                instance.tick(now - before)
            before = now

    def _fail_waiting(self, error: WorkerError) -> None:
        for queue in (self._shared, *self._own):
            for job in queue:
                job.fail(error)
            queue.clear()

    def _keep(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the pool, until the pool closes."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _load_timeout_s(spec: WorkerSpec) -> float:
    return _LOAD_S if engine(spec.engine).compiles == "never" else _COMPILE_S
