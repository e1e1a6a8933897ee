"""Words to workloads."""

from pathlib import Path
from typing import Any

import pytest

from pinstripe.cli.workloads import WorkloadWords, read_workloads
from pinstripe.configuration import Arrivals, DispatchRule, Workload
from pinstripe.errors import UsageError

BUDGET = "64"


def test_lists_span_the_grid() -> None:
    """Every rate with every policy and budget, rates first."""
    words = WorkloadWords(scenario="server", seq="16", rate="5,9.5", policy="fifo,smart", token_budget=BUDGET)
    asked = read_workloads(words)

    assert asked.workloads == [
        Workload(
            scenario="server",
            sequence_tokens=16,
            arrivals=Arrivals(rate_per_s=rate),
            dispatch=DispatchRule(policy=policy, tokens=64),
        )
        for rate in (5.0, 9.5)
        for policy in ("fifo", "smart")
    ]
    assert asked.texts == []
    assert asked.times is None


def test_texts_are_taken_as_they_stand_in_their_file(tmp_path: Path) -> None:
    """A dispatcher makes the batches, so the workload has no order and no budget of its own."""
    path = tmp_path / "texts.txt"
    path.write_text("a\nb\n")
    asked = read_workloads(WorkloadWords(scenario="multi-stream", texts=path, token_budget=BUDGET))
    (workload,) = asked.workloads

    assert workload.batch == 8
    assert workload.texts is not None
    assert (workload.texts.order, workload.texts.token_budget, workload.texts.texts) == ("arrival", None, 2)
    assert workload.dispatch == DispatchRule(tokens=64)


def test_a_trace_keeps_its_own_rate_or_is_stretched(tmp_path: Path) -> None:
    """Its times come with the workload; beside a rate it is the trace still."""
    path = tmp_path / "times.txt"
    path.write_text("5\n5.5\n7\n")
    own = read_workloads(WorkloadWords(scenario="server", trace=path))
    stretched = read_workloads(WorkloadWords(scenario="server", trace=path, rate="3"))

    assert own.times is not None
    assert own.times.tolist() == [0, 500_000_000, 2_000_000_000]
    assert [one.arrivals.process for one in (*own.workloads, *stretched.workloads) if one.arrivals] == ["trace"] * 2
    assert [one.arrivals.rate_per_s for one in (*own.workloads, *stretched.workloads) if one.arrivals] == [None, 3.0]


@pytest.mark.parametrize(
    ("scenario", "words", "says"),
    [
        ("server", {}, "nothing says how many requests arrive"),
        ("server", {"rate": "nan"}, "a rate of nan requests a second is out of range"),
        ("server", {"rate": "abc"}, "--rate 'abc' is not understood at 'abc'; use a comma-separated list of numbers"),
        ("server", {"rate": "5", "clients": "2"}, "--clients and --rate both say how many"),
        ("server", {"rate": "5", "find_peak": True}, "--find-peak and --rate both say how many"),
        ("server", {"rate": "5", "p99_ms": "9"}, "--p99-ms 9 is about the highest rate"),
        ("server", {"clients": "2", "arrivals": "constant"}, "both say when requests arrive"),
        ("server", {"clients": "0"}, "0 clients are out of range"),
        ("server", {"trace": Path("absent.txt")}, "cannot read absent.txt"),
        ("server", {"rate": "5", "batch": "8"}, "--batch 8 is about batches that are made before"),
        ("server", {"rate": "5", "order": "sorted"}, "--order sorted is about batches that are made before"),
        ("server", {"rate": "5", "patience": "0"}, "--patience 0 is out of range"),
        ("server", {"rate": "5", "token_budget": "0"}, "a budget of 0 tokens is out of range"),
        ("server", {"rate": "5", "policy": "best"}, "use one of smart, fifo, shortest-first"),
        ("server", {"rate": "5", "texts_per_request": "0"}, "0 texts a request are out of range"),
        ("single-stream", {"rate": "5"}, "--rate 5 is about arriving requests; use --scenario server"),
        ("offline", {"find_peak": True}, "--find-peak is about arriving requests"),
        ("offline", {"policy": "fifo"}, "--policy fifo is about texts that are dispatched"),
        ("multi-stream", {"seed": 1}, "--seed 1 is about arriving requests"),
        ("multi-stream", {"seq": "16", "texts": Path("a.txt")}, "--seq 16 gives all texts one length"),
        ("offline", {"order": "sorted"}, "--order sorted is about real texts"),
    ],
)
def test_what_contradicts_or_says_nothing_is_refused(scenario: str, words: dict[str, Any], says: str) -> None:
    """The message names the option with its value."""
    with pytest.raises(UsageError, match=says):
        read_workloads(WorkloadWords(scenario=scenario, **words))


def test_a_trace_that_goes_backwards_is_refused_with_its_line(tmp_path: Path) -> None:
    """Requests cannot be sent before those above them."""
    path = tmp_path / "back.txt"
    path.write_text("0\n1\n0.5\n")

    with pytest.raises(UsageError, match=r"line 3 of .*back\.txt is 0\.5 s before the one above it"):
        read_workloads(WorkloadWords(scenario="server", trace=path))
