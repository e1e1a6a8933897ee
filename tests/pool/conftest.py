"""Workers with the fake engine."""

import sys
from typing import Any

import pytest

from pinstripe.engines import Artefact, LoadRequest
from pinstripe.pool import WorkerSpec
from pinstripe.testing.fake_engine import fake_network


class FakeWorker:
    """Makes specifications of workers that hold the fake engine."""

    def __call__(
        self, *, cpus: tuple[int, ...] | None = None, python: str = sys.executable, **options: Any
    ) -> WorkerSpec:
        """Return a worker's specification; `options` are the fake engine's."""
        load = LoadRequest(
            network=fake_network(),
            artefact=Artefact(format="none", path="", origin="model"),
            threads=1,
            options=options,
        )
        return WorkerSpec(engine="fake", load=load, cpus=cpus, python=python)


@pytest.fixture
def fake_worker() -> FakeWorker:
    """A maker of specifications."""
    return FakeWorker()
