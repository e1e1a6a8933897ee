"""What `benchmarks/dispatch.py` compares."""

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pinstripe.configuration import check_groups
from pinstripe.load import LoadRun

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def arms(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What is compared."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("dispatch_sections.arms")


@pytest.fixture
def mixes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The texts."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("dispatch_sections.mixes")


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What is made of a run."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("dispatch_sections.serving")


@pytest.mark.parametrize(("machine", "cores", "socket"), [("2x24", 48, 24), ("2x40", 80, 40), ("2", 2, 2)])
def test_arms_fit_the_machine(arms: ModuleType, machine: str, cores: int, socket: int) -> None:
    """No arm has more cores than there are, all have the same budget, and only one process spans sockets."""
    found = arms.arms_of(machine, (32,), 256, 50.0)

    for arm in found:
        check_groups(arm.groups)
        assert sum(group.instances * group.cores for group in arm.groups) <= cores
        assert arm.rule.tokens == 256
        if arm.family != "one process":
            assert all(group.cores <= socket for group in arm.groups)
    assert {arm.family for arm in found} == {
        "one process",
        "uniform, fifo",
        "uniform, shortest-first",
        "uniform, smart",
        "classes, smart",
    }


def test_mixes_are_what_they_are_called(mixes: ModuleType) -> None:
    """Queries are short; one search text in ten is a document; SQuAD's range is MLPerf's 40 to 384."""
    lengths = {
        name: np.array([len(row) for row in mixes.texts_of(mix, 4000, 512, seed=0)])
        for name, mix in mixes.MIXES.items()
    }

    assert lengths["queries"].max() <= 32
    assert np.median(lengths["queries"]) == 12
    documents = lengths["search"][lengths["search"] > 32]
    assert documents.min() >= 256
    assert len(documents) / 4000 == pytest.approx(0.1, abs=0.015)
    assert lengths["squad"].min() == 40
    assert lengths["squad"].max() == 384


def test_percentiles_are_told_apart_by_class(mixes: ModuleType, serving: ModuleType) -> None:
    """Latencies of 1 to 4 ms, the even ones of long texts: 3 ms is the most of the short, 4 ms of the long."""
    short, long = (mixes.texts_of(mixes.MIXES[name], 1, 512, 0)[0] for name in ("queries", "squad"))
    rows = [short, long, short, long]
    run = LoadRun(
        planned=4,
        clients=None,
        scheduled_ns=(0, 0, 0, 0),
        sent_ns=(0, 0, 0, 0),
        done_ns=(1_000_000, 2_000_000, 3_000_000, 4_000_000),
        failures={},
        most_in_flight=4,
        elapsed_ns=4_000_000,
        cpu_ns=0,
        end="complete",
    )

    assert serving.class_p99_ms(run, rows, (32,)) == [3.0, 4.0]
