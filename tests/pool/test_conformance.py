"""Every executor keeps the executor's promises."""

from contextlib import AbstractAsyncContextManager

from pinstripe.engines import Artefact, LoadRequest
from pinstripe.pool import Executor, Pool, WorkerSpec
from pinstripe.testing.executor_conformance import ExecutorConformance, closing
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.fake_executor import FakeExecutor


class TestPool(ExecutorConformance):
    """The pool of worker processes."""

    def make(self) -> AbstractAsyncContextManager[Executor]:
        """Open two workers with the fake engine."""
        load = LoadRequest(
            network=fake_network(),
            artefact=Artefact(format="none", path="", origin="model"),
            threads=1,
            options={"fixed_us": 2000.0},
        )
        return Pool([WorkerSpec(engine="fake", load=load, cpus=None)] * 2)


class TestFakeExecutor(ExecutorConformance):
    """The fake for tests."""

    def make(self) -> AbstractAsyncContextManager[Executor]:
        """Make two instances of equal speed."""
        return closing(FakeExecutor(2, lambda _, batch: batch.ids.size))
