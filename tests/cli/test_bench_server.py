"""`pinstripe bench --scenario server` and `multi-stream`, with an engine whose cost is known."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pinstripe.bench import read_records
from pinstripe.configuration import InstanceGroup

if TYPE_CHECKING:
    import subprocess

Run = Callable[..., "subprocess.CompletedProcess[str]"]
QUICK = ("--engine", "fake", "--repeats", "1", "--min-forwards", "1", "--output", "mine.jsonl")
SERVER = ("--scenario", "server", "--min-time", "1", "--seq", "16")


def test_rates_and_policies_span_a_grid(pinstripe: Run, tiny_model: Path) -> None:
    """A table for each rate, in which policies are compared; records hold every request's times."""
    finished = pinstripe(
        *("bench", str(tiny_model), *SERVER, "--rate", "20,40", "--arrivals", "constant", "--policy", "fifo,smart"),
        *("--option", "fixed_us=2000", *QUICK),
    )
    records = read_records(tiny_model.parent / "mine.jsonl")

    assert finished.returncode == 0, finished.stderr
    assert "server, constant 20/s, 16 tokens\n" in finished.stdout
    assert "server, constant 40/s, 16 tokens\n" in finished.stdout
    assert "offered/s" in finished.stdout
    assert finished.stdout.count("1 (base)") == 2
    loads = [record.measurement.load for record in records if record.measurement and record.measurement.load]
    assert [len(load.run.scheduled_ns) for load in loads] == [20, 20, 40, 40]
    for load in loads:
        assert set(load.tokens) == {16}
        assert min(load.latency_ns) > 2_000_000
        assert load.run.failures == {}


def test_clients_and_several_texts_a_request(pinstripe: Run, tiny_model: Path) -> None:
    """Two clients ask for three texts at a time; nothing is offered at a rate, so none is printed."""
    finished = pinstripe(
        *("bench", str(tiny_model), *SERVER, "--clients", "2", "--texts-per-request", "3", "--json", *QUICK),
        *("--option", "fixed_us=2000"),
    )
    (trial,) = json.loads(finished.stdout)["trials"]

    assert finished.returncode == 0, finished.stderr
    assert trial["workload"]["arrivals"] == {"process": "closed", "clients": 2, "texts": 3}
    assert trial["result"]["load"]["offered_per_s"] is None
    assert trial["result"]["samples_per_s"] == pytest.approx(3 * trial["result"]["load"]["answered_per_s"], rel=0.2)


def test_a_trace_is_replayed_from_a_file(pinstripe: Run, tiny_model: Path) -> None:
    """Three times in a file are three requests, as far apart as they were."""
    (tiny_model.parent / "times.txt").write_text("100\n100.1\n100.3\n")
    finished = pinstripe("bench", str(tiny_model), *SERVER, "--trace", "times.txt", *QUICK)
    (record,) = read_records(tiny_model.parent / "mine.jsonl")

    assert finished.returncode == 0, finished.stderr
    assert "server, trace times.txt, 16 tokens\n" in finished.stdout
    assert record.measurement is not None
    assert record.measurement.load is not None
    assert record.measurement.load.run.scheduled_ns == (0, 100_000_000, 300_000_000)


def test_an_instance_that_dies_is_the_reason_of_the_failure(pinstripe: Run, tiny_model: Path) -> None:
    """A worker that exits in mid-run makes the trial a failure with its message, as in every scenario."""
    finished = pinstripe(
        *("bench", str(tiny_model), *SERVER, "--rate", "200", "--option", "crash_at=60", *QUICK),
        *("--option", "fixed_us=2000"),
    )
    (record,) = read_records(tiny_model.parent / "mine.jsonl")

    assert finished.returncode == 1
    assert record.measurement is None
    assert record.failure is not None
    assert "70" in record.failure.message  # the exit code


def test_a_query_is_split_over_groups_of_instances(pinstripe: Run, tiny_model: Path) -> None:
    """Groups are measured as they were asked for; single-stream cannot have them, and says what can."""
    groups = ("--groups", "<=32: 1x1, rest: 1x1")
    finished = pinstripe(
        "bench", str(tiny_model), "--scenario", "multi-stream", "--seq", "16", "--min-time", "0.2", *groups, *QUICK
    )
    (record,) = read_records(tiny_model.parent / "mine.jsonl")
    refused = pinstripe("bench", str(tiny_model), "--scenario", "single-stream", *groups, *QUICK)

    assert finished.returncode == 0, finished.stderr
    assert "multi-stream, batch 8 x 16 tokens\n" in finished.stdout
    assert record.configuration.groups == (
        InstanceGroup(instances=1, cores=1, max_tokens=32),
        InstanceGroup(instances=1, cores=1),
    )
    assert record.measurement is not None
    assert len(record.measurement.engine_ns) == 2
    assert refused.returncode == 2
    assert "use multi-stream" in refused.stderr


def test_a_rate_that_cannot_be_is_refused_in_one_line(pinstripe: Run, tiny_model: Path) -> None:
    """The line names the value and the way out, and nothing is measured."""
    finished = pinstripe("bench", str(tiny_model), "--scenario", "server", "--rate", "0", *QUICK)

    assert finished.returncode == 2
    assert finished.stdout == ""
    assert finished.stderr.count("\n") == 1
    assert "a rate of 0 requests a second is out of range" in finished.stderr
