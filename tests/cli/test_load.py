"""`pinstripe load` as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pinstripe.cli.main import app
from pinstripe.errors import UsageError
from pinstripe.testing.fake_server import Behaviour, serving_fake
from pinstripe.testing.fake_service import FakeService

pytest.importorskip("aiohttp")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
JUDGED = {0, 1}
"""On a busy machine the generator may be late, so that a run is invalid; what it says of the server stays."""


def _started(*words: str, cwd: Path) -> "subprocess.Popen[str]":
    """Return a process that has connected to its server."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from pinstripe.cli import main; main()", *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert process.stderr is not None
    process.stderr.readline()  # where to
    process.stderr.readline()  # which texts
    return process


def test_a_run(pinstripe: Run, tmp_path: Path) -> None:
    """A table, rates, and raw times of every request."""
    with serving_fake(FakeService(0.001)) as url:
        finished = pinstripe("load", url, "--rate", "100", "--requests", "150", "--seed", "3", "-o", "raw.jsonl")

    assert finished.returncode in JUDGED
    assert "/v1/embeddings (openai), 4 numbers an embedding" in finished.stderr
    assert "12 built-in English sentences" in finished.stderr
    assert "poisson 100/s" in finished.stdout
    assert "150 requests, 150 answered" in finished.stdout
    assert "150 requests are too few to bound the 99th percentile, which needs 299" in finished.stdout
    about, *lines = [json.loads(line) for line in (tmp_path / "raw.jsonl").read_text().splitlines()]
    assert about["requests"] == len(lines) == 150
    assert all(line["done_ns"] > line["sent_ns"] >= line["scheduled_ns"] for line in lines)


def test_a_closed_loop_as_json(pinstripe: Run, tmp_path: Path) -> None:
    """Texts of a file; no claim about saturation."""
    (tmp_path / "texts.txt").write_text("one\ntwo\n")
    with serving_fake(FakeService(0.001), paths=("/embed",)) as url:
        finished = pinstripe("load", url, "--clients", "3", "--requests", "60", "--texts", "texts.txt", "--json")

    assert finished.returncode in JUDGED
    outcome = json.loads(finished.stdout)
    assert outcome["api"] == "tei"  # the first path that was tried answers 404
    assert outcome["texts"] == 2
    assert outcome["report"]["clients"] == 3
    assert outcome["report"]["answered"] == 60
    assert outcome["report"]["saturated"] is None


def test_find_peak(pinstripe: Run) -> None:
    """A bound that a service of 40 ms never keeps: said in words, and soon."""
    with serving_fake(FakeService(0.04)) as url:
        finished = pinstripe("load", url, "--find-peak", "--p99-ms", "20", "--requests", "299", "--warmup", "0")

    assert finished.returncode == 1
    assert "p99 ≤ 20 ms" in finished.stdout
    assert "no rate holds" in finished.stdout
    lines = finished.stdout.splitlines()
    assert lines[1].endswith("  because")
    assert lines[2].endswith(" requests")
    assert all(line == line.rstrip() for line in lines)


def test_a_server_that_dies_midway(tmp_path: Path) -> None:
    """More than 1 % failed: code 1, whatever was answered before."""
    words = ("--rate", "50", "--arrivals", "constant", "--duration", "3", "--warmup", "0")
    with serving_fake(FakeService(0.001)) as url:
        process = _started("load", url, *words, cwd=tmp_path)
        time.sleep(1)
    out, _ = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "connection refused" in out


def test_a_trace_of_more_than_a_day(pinstripe: Run, tmp_path: Path) -> None:
    """Refused before anything is connected, but for a duration."""
    (tmp_path / "trace").write_text("0\n86401\n")

    refused = pinstripe("load", "127.0.0.1:9", "--trace", "trace")
    cut = pinstripe("load", "127.0.0.1:9", "--trace", "trace", "--duration", "1")

    assert refused.returncode == 2
    assert "the trace spans 86,401 s, more than a day" in refused.stderr
    assert "connection refused" in cut.stderr


def test_a_port_that_is_taken() -> None:
    """The fake server says so on one line."""
    with serving_fake(FakeService(0.001)) as url:
        words = ("-m", "pinstripe.testing.fake_server", "--port", url.rpartition(":")[2])
        finished = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=False)

    assert finished.returncode == 1
    assert finished.stderr.count("\n") == 1
    assert "cannot listen on port" in finished.stderr


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("error", "HTTP 500"),
        ("close", "connection closed; look into the server's log"),
        ("silent", "timeout: no answer within 0.5 s"),
        ("short", "wrong answer: 0 embeddings for 1 texts"),
    ],
)
def test_a_server_that_does_not_answer_rightly(behaviour: Behaviour, message: str, pinstripe: Run) -> None:
    """One line, code 1, and no output file."""
    with serving_fake(FakeService(0.001), behaviour=behaviour) as url:
        finished = pinstripe("load", url, "--rate", "10", "--timeout", "0.5", "-o", "raw.jsonl")

    assert finished.returncode == 1
    assert message in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name --rate 100, --clients 8, --trace FILE or --find-peak"),
        (("--rate", "5", "--clients", "2"), "--rate and --clients both say"),
        (("--rate", "0"), "a rate of 0 requests a second is out of range"),
        (("--rate", "-3"), "a rate of -3"),
        (("--rate", "nan"), "a rate of nan"),
        (("--rate", "1e7"), "out of range"),
        (("--rate", "900000", "--duration", "1000"), "900,000,000 requests are more than"),
        (("--clients", "0"), "0 clients are out of range"),
        (("--clients", "2", "--arrivals", "constant"), "leave it out with --clients"),
        (("--find-peak",), "name both, or neither"),
        (("--rate", "5", "--p99-ms", "9"), "name both, or neither"),
        (("--find-peak", "--p99-ms", "9", "--duration", "9"), "name --requests"),
        (("--find-peak", "--p99-ms", "9", "--requests", "100"), "use 299 or more"),
        (("--rate", "5", "--arrivals", "weekly"), "use one of poisson, constant"),
        (("--rate", "5", "--api", "soap"), "use one of openai, tei"),
        (("--trace", "none.txt"), "cannot read none.txt"),
        (("--rate", "5", "--texts", "none.txt"), "cannot read none.txt"),
        (("--rate", "5", "--api-key-env", "NO_SUCH_KEY"), "NO_SUCH_KEY is not set"),
    ],
)
def test_what_cannot_be(words: tuple[str, ...], message: str) -> None:
    """One line, before anything is connected; the command turns it into code 2."""
    with pytest.raises(UsageError) as caught:
        app(["load", "127.0.0.1:9", *words], standalone_mode=False)

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_keys_are_never_shown(pinstripe: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a right one nor one that cannot be."""
    monkeypatch.setenv("PINSTRIPE_API_KEY", "s3cret")
    with serving_fake(FakeService(0.001), key="s3cret") as url:
        right = pinstripe("load", url, "--clients", "1", "--requests", "3", "--json")
    monkeypatch.setenv("MY_KEY", "s3cret\nx")
    wrong = pinstripe("load", "127.0.0.1:9", "--rate", "5", "--api-key-env", "MY_KEY")

    assert json.loads(right.stdout)["report"]["answered"] == 3
    assert wrong.returncode == 2
    assert "s3cret" not in right.stdout + right.stderr + wrong.stderr


def test_an_output_that_exists_is_left_alone(pinstripe: Run, tmp_path: Path) -> None:
    """Before a request is sent."""
    (tmp_path / "raw.jsonl").write_text("mine")

    finished = pinstripe("load", "127.0.0.1:9", "--rate", "5", "-o", "raw.jsonl")

    assert finished.returncode == 2
    assert "raw.jsonl exists" in finished.stderr
    assert (tmp_path / "raw.jsonl").read_text() == "mine"


def test_ctrl_c_reports_what_was_measured(tmp_path: Path) -> None:
    """Code 130, and the table of what there was."""
    with serving_fake(FakeService(0.001)) as url:
        words = ("load", url, "--rate", "100", "--duration", "600", "--output", "raw.jsonl")
        process = _started(*words, cwd=tmp_path)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "it was stopped; this is what was measured so far" in out
    assert (tmp_path / "raw.jsonl").read_text().count("\n") > 1
