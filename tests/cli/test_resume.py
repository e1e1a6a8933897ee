"""`pinstripe bench --resume`, as after a `kill -9`."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pinstripe.bench import read_records

Run = Callable[..., "subprocess.CompletedProcess[str]"]

GRID = ("--engine", "fake", "--option", "fixed_us=3000", "--batch", "1,2", "--repeats", "3")
QUICK = ("--min-time", "0.2", "--min-forwards", "3")


def test_killed_run_goes_on(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """After `kill -9`, and with a line cut off, exactly what is missing is measured, into the same run."""
    path = tmp_path / "kept.jsonl"
    command = [sys.executable, "-c", "from pinstripe.cli import main; main()", "bench", str(tiny_model), *GRID, *QUICK]
    with subprocess.Popen([*command, "--output", str(path)], cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 60
        while not (path.exists() and path.read_bytes().count(b"\n") >= 3) and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
    whole = path.read_bytes()[: path.read_bytes().rfind(b"\n") + 1]
    path.write_bytes(whole)
    before = read_records(path)
    path.write_bytes(whole + whole[:100])
    finished = pinstripe("bench", str(tiny_model), *GRID, *QUICK, "--resume", "kept.jsonl")
    after = read_records(path)

    assert finished.returncode == 0, finished.stderr
    assert "was cut off" in finished.stderr
    assert "6 of 6 measurements kept in kept.jsonl" in finished.stderr
    assert after[: len(before)] == before
    assert sorted((record.workload.batch, record.repeat) for record in after) == [
        (batch, repeat) for batch in (1, 2) for repeat in range(3)
    ]
    assert {record.run for record in after} == {before[0].run}
    assert pinstripe("report", "kept.jsonl").stdout == finished.stdout


def test_nothing_missing_measures_nothing(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """A finished run is shown again; a larger one measures what is new. Failures are results, and kept."""
    failing = ("--engine", "fake", "--option", "fail_at=40", "--batch", "1", *QUICK, "--min-forwards", "100")
    path = tmp_path / "mine.jsonl"
    first = pinstripe("bench", str(tiny_model), *failing, "--repeats", "1", "--output", "mine.jsonl")
    content = path.read_bytes()
    again = pinstripe("bench", str(tiny_model), *failing, "--repeats", "1", "--resume", "mine.jsonl")

    assert (first.returncode, again.returncode) == (1, 1)
    assert path.read_bytes() == content
    assert "1 of 1 measurements kept in mine.jsonl (1 failed)" in again.stderr
    pinstripe("bench", str(tiny_model), *failing, "--repeats", "2", "--resume", "mine.jsonl")
    assert [record.repeat for record in read_records(path)] == [0, 1]


def test_what_cannot_go_on_is_one_clear_line(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """Another length of measurement, a model that changed, a file that is not there: refused, and nothing is added."""
    words = ("bench", str(tiny_model), "--engine", "fake", "--repeats", "1")
    pinstripe(*words, *QUICK, "--output", "mine.jsonl")
    path = tmp_path / "mine.jsonl"
    content = path.read_bytes()
    refused = [
        (pinstripe(*words, "--min-time", "0.3", "--resume", "mine.jsonl"), "min_s 0.2, now 0.3"),
        (pinstripe(*words, *QUICK, "--resume", "no.jsonl"), "no.jsonl"),
        (pinstripe(*words, *QUICK, "--resume", "mine.jsonl", "--output", "other.jsonl"), "leave --output out"),
    ]
    config = tiny_model / "config.json"
    config.write_text(config.read_text().replace('"num_hidden_layers": 2', '"num_hidden_layers": 3'))
    refused.append((pinstripe(*words, *QUICK, "--resume", "mine.jsonl"), "the model changed"))

    for finished, says in refused:
        error = finished.stderr.splitlines()[-1]
        assert finished.returncode == 2, finished.stderr
        assert error.startswith("pinstripe: error: ")
        assert says in error
    assert path.read_bytes() == content


def test_damage_inside_is_not_passed_over(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """Only a cut-off last line is dropped; a line that is no record is said, and the file is left alone."""
    (tmp_path / "mine.jsonl").write_text("hello\n")
    finished = pinstripe("bench", str(tiny_model), "--engine", "fake", "--resume", "mine.jsonl")

    assert finished.returncode == 1
    assert "line 1 of mine.jsonl is not a record" in finished.stderr
    assert (tmp_path / "mine.jsonl").read_text() == "hello\n"


def test_texts_that_were_renamed_or_changed(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """Under another name the same texts are there already, in one table; changed texts are refused by name."""
    (tiny_model / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    first, second, path = tmp_path / "first.txt", tmp_path / "second.txt", tmp_path / "mine.jsonl"
    first.write_text("a a a\na\n")
    words = ("bench", str(tiny_model), "--engine", "fake", "--repeats", "1", "--scenario", "offline", *QUICK)
    pinstripe(*words, "--texts", "first.txt", "--output", "mine.jsonl")
    first.rename(second)
    renamed = pinstripe(*words, "--texts", "second.txt", "--batch", "1,2", "--resume", "mine.jsonl")

    assert "2 of 2 measurements kept" in renamed.stderr
    assert [record.workload.batch for record in read_records(path)] == [1, 2]
    assert renamed.stdout.count("configuration ") == 1
    content = path.read_bytes()
    second.write_text("a a\na\n")
    changed = pinstripe(*words, "--texts", "second.txt", "--resume", "mine.jsonl")
    assert changed.returncode == 2
    assert "the texts changed since (2 of first.txt" in changed.stderr
    assert "now 2 of second.txt" in changed.stderr
    assert path.read_bytes() == content
