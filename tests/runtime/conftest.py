"""What the tests of starting processes share."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from pinstripe.runtime import Process, StartRequest, start


@pytest.fixture
def launch() -> Iterator[Callable[..., Process]]:
    """Start Python code (or `argv`), by the fields of a StartRequest; everything is stopped after the test."""
    started: list[Process] = []

    def _launch(code: str = "", **fields: Any) -> Process:
        request = {"argv": (sys.executable, "-c", code), "output": "keep", **fields}
        started.append(start(StartRequest(**request)))
        return started[-1]

    yield _launch
    for process in started:
        process.stop(grace_s=0)


@pytest.fixture
def wait_until() -> Callable[[Callable[[], object]], None]:
    """Wait for a condition to hold, for 10 s at most."""

    def _wait_until(condition: Callable[[], object]) -> None:
        deadline = monotonic() + 10
        while not condition():
            assert monotonic() < deadline, "the condition did not come true"
            sleep(0.01)

    return _wait_until


@pytest.fixture
def children() -> Callable[[], set[int]]:
    """Give the process ids of all children of this process, zombies too."""

    def _children() -> set[int]:
        found = set()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                found.add(int(stat.parent.name))
        return found

    return _children
