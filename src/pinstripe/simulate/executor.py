"""An executor whose time is computed."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pinstripe.errors import ConfigurationError, WorkerError
from pinstripe.models import TokenBatch
from pinstripe.pool import BatchResult, BatchTiming
from pinstripe.simulate.cost import Cost
from pinstripe.simulate.instance import SimulatedInstance
from pinstripe.simulate.noise import Noise

__all__ = ["SimulatedExecutor"]


@dataclass(slots=True, eq=False)
class _Job:
    batch: TokenBatch
    future: asyncio.Future[BatchResult]
    submitted_ns: int
    started_ns: int = 0
    engine_ns: int = 0


class SimulatedExecutor:
    """An `Executor` of instances that sleep as long as a batch would take, best under `run_simulated`.

    An instance runs one batch at a time, in the order in which they came: first those for itself, then those for any.
    The output is each text's number of real tokens, float32 [texts, 1]. All times are of the event loop's clock. The
    noise of each instance is drawn from its own generator, so that it does not change with what the others do.
    """

    def __init__(
        self,
        instances: Sequence[SimulatedInstance],
        cost: Cost,
        *,
        noise: Noise | None = None,
        seed: int = 0,
        contention: float = 0.0,
        overhead_s: float = 0.0,
    ) -> None:
        """Describe the machine.

        Args:
            instances: At least one.
            cost: What a batch takes on an instance of so many cores.
            noise: What makes it take another time; None for nothing.
            seed: Of the noise.
            contention: What a batch takes longer while all others on its socket are busy, as a share of its time: the
                bandwidth of a socket's memory is shared. With some of them busy, by their share of the others' cores.
                Those that are busy when it begins count.
            overhead_s: From the end of a batch until its caller hears of it. The instance is idle meanwhile, unless
                another batch waits for it.

        Raises:
            ConfigurationError: There is no instance, a number is below 0, or the cost knows no such instance.
        """
        if not instances:
            raise ConfigurationError("a machine of no instances can run nothing; give it at least one")
        if contention < 0 or overhead_s < 0:
            raise ConfigurationError(f"contention {contention:g} and overhead {overhead_s:g} s must not be below 0")
        for instance in instances:
            cost(instance.cores, 1, 1)  # what it does not know it says now, not in the middle of a run
        self._instances = tuple(instances)
        self._cost = cost
        self._noise = noise or Noise()
        self._random = [np.random.default_rng((seed, index)) for index in range(len(instances))]
        self._contention = contention
        self._overhead_s = overhead_s
        self._running: list[_Job | None] = [None] * len(instances)
        self._own: list[deque[_Job]] = [deque() for _ in instances]
        self._shared: deque[_Job] = deque()
        self._unanswered: dict[_Job, None] = {}  # a set would close them in another order each time
        self._closed = False

    @property
    def capacity(self) -> int:
        """Number of instances."""
        return len(self._instances)

    def available(self, instance: int) -> bool:
        """See `Executor.available`; simulated instances do not fail."""
        return 0 <= instance < self.capacity and not self._closed

    async def submit(self, batch: TokenBatch, *, instance: int | None = None) -> BatchResult:
        """Run a batch; see `Executor.submit`.

        Raises:
            WorkerError: The executor is closed, or was while the batch waited or ran.
            ConfigurationError: There is no instance of that index.
        """
        if self._closed:
            raise WorkerError("the simulated machine is closed; make a new one")
        if instance is not None and not 0 <= instance < self.capacity:
            raise ConfigurationError(f"there is no instance {instance}; use 0 to {self.capacity - 1}")
        job = _Job(batch, asyncio.get_running_loop().create_future(), _now_ns())
        self._unanswered[job] = None
        (self._shared if instance is None else self._own[instance]).append(job)
        for index in range(self.capacity) if instance is None else (instance,):
            self._feed(index)
        try:
            return await job.future
        finally:
            del self._unanswered[job]

    async def close(self) -> None:
        """See `Executor.close`."""
        self._closed = True
        for job in self._unanswered:
            if not job.future.done():
                job.future.set_exception(WorkerError("the simulated machine was closed before the batch was done"))

    def _feed(self, index: int) -> None:
        """Begin with the next batch, if the instance is idle and one waits."""
        while self._running[index] is None and (waiting := self._own[index] or self._shared):
            job = waiting.popleft()
            if not job.future.done():  # whoever asked may have given up
                self._begin(index, job)

    def _begin(self, index: int, job: _Job) -> None:
        instance = self._instances[index]
        expected_s = self._cost(instance.cores, job.batch.size, job.batch.sequence_length) * instance.slowness
        seconds = self._noise.applied(
            expected_s * (1 + self._contention * self._busy_share(index)), self._random[index]
        )
        self._running[index] = job
        job.started_ns = _now_ns()
        job.engine_ns = max(1, round(seconds * 1e9))
        asyncio.get_running_loop().call_at((job.started_ns + job.engine_ns) / 1e9, self._end, index, job)

    def _busy_share(self, index: int) -> float:
        """Return the share of the cores of the others on the socket that are busy, 0 to 1."""
        others = [
            (instance.cores, job is not None)
            for other, (instance, job) in enumerate(zip(self._instances, self._running, strict=True))
            if other != index and instance.socket == self._instances[index].socket
        ]
        return sum(cores for cores, busy in others if busy) / sum(cores for cores, _ in others) if others else 0.0

    def _end(self, index: int, job: _Job) -> None:
        self._running[index] = None
        finished_ns = _now_ns()
        if self._overhead_s:
            loop = asyncio.get_running_loop()
            loop.call_later(self._overhead_s, _answer, index, job, finished_ns)
        else:
            _answer(index, job, finished_ns)
        if not self._closed:
            self._feed(index)


def _answer(index: int, job: _Job, finished_ns: int) -> None:
    if job.future.done():  # whoever asked has given up, or was told that nothing will come
        return
    timing = BatchTiming(
        submitted_ns=job.submitted_ns,
        started_ns=job.started_ns,
        engine_ns=job.engine_ns,
        finished_ns=finished_ns,
        done_ns=_now_ns(),
    )
    job.future.set_result(BatchResult({"output": job.batch.lengths.astype(np.float32)[:, None]}, index, timing))


def _now_ns() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)
